"""An unmodified kubectl, with a home of its own."""

import asyncio
import os


class Kubectl:
    """Runs kubectl as one user of one cluster."""

    def __init__(self, program, kubeconfig):
        self._program = str(program)
        self._environment = {
            "HOME": str(kubeconfig.parent),
            "KUBECONFIG": str(kubeconfig),
            "PATH": os.environ["PATH"],
        }

    async def call(self, *words, stdin=None):
        """Return the exit status, the output and the complaints."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        process = await asyncio.create_subprocess_exec(
            self._program,
            *map(str, words),
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL if data is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            output, errors = await process.communicate(data)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
        return process.returncode, output.decode(), errors.decode()

    async def __call__(self, *words, stdin=None):
        """Return the output of a command that must succeed."""
        status, output, errors = await self.call(*words, stdin=stdin)
        assert status == 0, f"kubectl {' '.join(map(str, words))}: {errors}"
        return output

    async def fails(self, *words, stdin=None):
        """Return the complaints of a command that must fail."""
        status, output, errors = await self.call(*words, stdin=stdin)
        assert status != 0, f"kubectl {' '.join(map(str, words))} succeeded: {output}"
        return errors
