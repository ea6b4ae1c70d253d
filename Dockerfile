# syntax=docker/dockerfile:1
# One image for every process: `docker run IMAGE extender`, `... manager`, `... agent`.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
RUN python -m venv /opt/koord
COPY requirements.lock requirements-dev.lock ./
# Every file that is installed is one whose hash is written down, the build tool included.
RUN /opt/koord/bin/pip install --require-hashes --only-binary :all: -r requirements.lock \
 && sed -n '/^setuptools==/,/^[[:space:]]*#/p' requirements-dev.lock > build.lock \
 && python -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes --only-binary :all: -r build.lock
COPY pyproject.toml README.md LICENSE ./
COPY api api
COPY domain domain
COPY certs certs
COPY process process
COPY kube kube
COPY extender extender
COPY webhook webhook
COPY manager manager
COPY descheduler descheduler
COPY agent agent
COPY runtimeproxy runtimeproxy
COPY simulator simulator
COPY cli cli
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist . \
 && /opt/koord/bin/pip install --no-deps --no-index /dist/*.whl \
 && /opt/koord/bin/pip uninstall --yes pip \
 && /opt/koord/bin/python -m compileall -q /opt/koord/lib

FROM ${BASE}
# The root file system may be read-only: nothing but /tmp is ever written.
ENV PATH=/opt/koord/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
COPY --from=build /opt/koord /opt/koord
WORKDIR /tmp
USER 65532:65532
ENTRYPOINT ["koord"]
CMD ["--help"]
