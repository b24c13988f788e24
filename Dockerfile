# docker build -t intone .        See docs/kubernetes.md for running it.
#
# Any Debian-like image with Python 3.11 or newer as `python3`. Both stages use the same one: the
# virtual environment points at its interpreter.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS build

# "server" is pocket-tts with torch and the small offline voice, "builtin" that voice alone.
ARG ENGINES=server
# "true" adds Ogg Opus, FLAC and MP3: FFmpeg, 100 MB, with codecs under the GPL.
ARG CODECS=false
# PyTorch's own index has builds without CUDA, 2.5 GB smaller than those on PyPI.
ARG TORCH_INDEX_URL=https://download.pytorch.org/whl/cpu

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
# What builds is not what runs.
RUN python3 -m venv /opt/intone && python3 -m venv /opt/tools

# Layers go from what changes least to what changes most. Every file that comes from an index has
# its hash in image/ (`make image-lock`), and --no-deps takes nothing that is not listed there.
# Of torch, the C++ tests and headers are 145 MB. --index-url, not --extra-index-url: with two
# indexes an unreachable first one would bring the CUDA build without a word.
COPY image/torch.txt image/
RUN case "${ENGINES}" in \
      server) /opt/intone/bin/pip install --require-hashes --no-deps \
                --index-url "${TORCH_INDEX_URL}" -r image/torch.txt \
              && rm -rf /opt/intone/lib/python3*/site-packages/torch/test \
                        /opt/intone/lib/python3*/site-packages/torch/include ;; \
      builtin) ;; \
      *) echo "ENGINES must be server or builtin" >&2; exit 1 ;; \
    esac

COPY image/server.txt image/builtin.txt image/codecs.txt image/tools.txt image/
RUN /opt/intone/bin/pip install --require-hashes --no-deps -r "image/${ENGINES}.txt" \
 && if [ "${CODECS}" = true ]; then \
      /opt/intone/bin/pip install --require-hashes --no-deps -r image/codecs.txt; \
    fi \
 && /opt/tools/bin/pip install --require-hashes --no-deps -r image/tools.txt

# A change of the source repeats only what follows.
COPY pyproject.toml README.md LICENSE ./
COPY protos/intone protos/intone
COPY server/intone_server server/intone_server
COPY client/intone_client client/intone_client
# The list of what is in the image (SBOM, CycloneDX) is made from what was really installed. pip
# goes last: nothing is installed in a running container.
RUN /opt/tools/bin/pip wheel --no-build-isolation --no-deps --wheel-dir /tmp/wheel . \
 && /opt/intone/bin/pip install --no-index --no-deps /tmp/wheel/*.whl \
 && /opt/intone/bin/pip check \
 && /opt/tools/bin/cyclonedx-py environment --pyproject pyproject.toml --of JSON \
      --output-file /opt/intone/sbom.cdx.json /opt/intone/bin/python \
 && /opt/intone/bin/pip uninstall --yes pip


FROM ${BASE_IMAGE}

LABEL org.opencontainers.image.title="intone" \
      org.opencontainers.image.description="Streaming gRPC text-to-speech around pocket-tts" \
      org.opencontainers.image.licenses="MIT"

# /cache exists and belongs to the user before VOLUME, so that a new named volume does too. No
# program changes who runs it.
RUN groupadd --gid 10001 intone \
 && useradd --uid 10001 --gid 10001 --home-dir /cache --no-create-home \
      --shell /usr/sbin/nologin intone \
 && install --directory --owner=10001 --group=10001 /cache /cache/huggingface \
 && find / -xdev -type f -perm /6000 -exec chmod a-s {} +

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
EXPOSE 50051 50052 9464

# A number, or Kubernetes cannot tell that it is not root (runAsNonRoot).
USER 10001:10001

# No HEALTHCHECK: Kubernetes ignores it and probes over gRPC. `intone info` inside the container
# answers the same question by hand.
#
# Exec form: no shell in between, so the server is process 1 and gets SIGTERM.
ENTRYPOINT ["intone-server"]
