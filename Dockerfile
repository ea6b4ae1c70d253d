# syntax=docker/dockerfile:1
# One image for every process: `docker run IMAGE extender`, `... manager`, `... agent`.
# BASE is any root with Python 3.11 or newer as python3, with venv, and glibc. It is named by its digest, so that
# nobody builds on what a registry happens to serve under a tag; renew it with its security updates.
ARG BASE=docker.io/library/python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

# What rarely changes has a stage, and in the image a layer, of its own.
FROM ${BASE} AS dependencies
ARG PIP_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY requirements.lock requirements-gpu.lock requirements-dev.lock ./
# Every file that is installed is one whose hash is written down, the build tool included.
RUN --mount=type=cache,target=/root/.cache/pip \
    sed -n '/^setuptools==/,/^[[:space:]]*#/p' requirements-dev.lock > build.lock \
 && python3 -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes --only-binary :all: -r build.lock \
 && python3 -m venv --without-pip /opt/koord \
 && /opt/build/bin/pip --python /opt/koord/bin/python install --no-compile \
    --require-hashes --only-binary :all: -r requirements.lock -r requirements-gpu.lock
# By the content of its source and never checked again: file times are not part of an image.
RUN /opt/koord/bin/python -m compileall -q -j 2 --invalidation-mode unchecked-hash /opt/koord/lib

FROM dependencies AS build
COPY . .
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /dist . \
 && /opt/build/bin/pip --python /opt/koord/bin/python install --no-compile --no-deps --no-index \
    --prefix /own /dist/*.whl \
 && find /own -name direct_url.json -delete \
 && /opt/koord/bin/python -m compileall -q --invalidation-mode unchecked-hash \
    -s /own -p /opt/koord /own/lib

FROM ${BASE}
# The root file system may be read-only: nothing but /tmp is ever written.
ENV PATH=/opt/koord/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
# python:slim has nothing of Python's own library compiled, and each process would compile what it imports.
RUN library=$(python3 -c 'import os; print(os.path.dirname(os.__file__))') \
 && if ! ls "$library"/__pycache__/os.*.pyc > /dev/null 2>&1; then \
      python3 -m compileall -q -j 2 --invalidation-mode unchecked-hash \
        -x '/(ensurepip|idlelib|lib2to3|site-packages|test|tests|tkinter|turtledemo)/' "$library"; \
    fi
COPY --from=dependencies /opt/koord /opt/koord
COPY --from=build /own /opt/koord
WORKDIR /tmp
USER 65532:65532
ENTRYPOINT ["koord"]
CMD ["--help"]
