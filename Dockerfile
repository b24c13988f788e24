# docker build -t intone .        See docs/kubernetes.md for running it.
#
# Any Debian-like image with Python 3.11 or newer as `python3`. Both stages use the same one: the
# virtual environment points at its interpreter.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS build

# Which engines: "server" is pocket-tts with torch, "builtin" the small offline voice.
ARG EXTRAS=server,builtin
# PyTorch's own index has builds without CUDA, 2.5 GB smaller than those on PyPI.
ARG TORCH_INDEX_URL=https://download.pytorch.org/whl/cpu

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
RUN python3 -m venv /opt/intone

# Layers go from what changes least to what changes most. torch comes first and depends only on
# its pinned version. --index-url, not --extra-index-url: with two indexes an unreachable first
# one would bring the CUDA build without a word. Its C++ tests and headers are 145 MB.
COPY constraints.txt ./
RUN case ",${EXTRAS}," in \
      *,server,*) /opt/intone/bin/pip install -c constraints.txt \
                    --index-url "${TORCH_INDEX_URL}" torch \
                  && rm -rf /opt/intone/lib/python3*/site-packages/torch/test \
                            /opt/intone/lib/python3*/site-packages/torch/include ;; \
    esac

# The other dependencies, from the project's metadata and empty packages.
COPY pyproject.toml ./
RUN mkdir -p protos/intone server/intone_server client/intone_client \
 && touch README.md LICENSE \
 && /opt/intone/bin/pip install -c constraints.txt ".[${EXTRAS}]" \
 && /opt/intone/bin/pip uninstall --yes intone

# A change of the source repeats only what follows.
COPY README.md LICENSE ./
COPY protos/intone protos/intone
COPY server/intone_server server/intone_server
COPY client/intone_client client/intone_client
RUN /opt/intone/bin/pip install -c constraints.txt --no-deps .


FROM ${BASE_IMAGE}

LABEL org.opencontainers.image.title="intone" \
      org.opencontainers.image.description="Streaming gRPC text-to-speech around pocket-tts" \
      org.opencontainers.image.licenses="MIT"

# /cache exists and belongs to the user before VOLUME, so that a new named volume does too.
RUN groupadd --gid 10001 intone \
 && useradd --uid 10001 --gid 10001 --home-dir /cache --no-create-home \
      --shell /usr/sbin/nologin intone \
 && install --directory --owner=10001 --group=10001 /cache /cache/huggingface

COPY --from=build /opt/intone /opt/intone

# The server listens on loopback by default, where nobody outside the container would reach it.
# HOME is writable with any user and a read-only root. Byte code was compiled at installation.
ENV PATH=/opt/intone/bin:$PATH \
    HOME=/cache \
    HF_HOME=/cache/huggingface \
    INTONE_LISTEN=0.0.0.0:50051 \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1

# Models and voices, downloaded once. Beside it only /tmp has to be writable.
VOLUME /cache
EXPOSE 50051

# A number, or Kubernetes cannot tell that it is not root (runAsNonRoot).
USER 10001:10001

# No HEALTHCHECK: Kubernetes ignores it and probes over gRPC. `intone info` inside the container
# answers the same question by hand.
#
# Exec form: no shell in between, so the server is process 1 and gets SIGTERM.
ENTRYPOINT ["intone-server"]
