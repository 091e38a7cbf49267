# skillc-gym on processors: docker build -t skillc-gym . && mkdir -p runs && chmod a+rwx runs && docker run --rm -v "$PWD/runs:/home/agent/runs" skillc-gym demo --quick
FROM python:3.11-slim@sha256:e41613d42d4891e4930f79523f93f81bbc7632584ec65e36ab055f41a800b41e
# One package index more to look for torch's build for processors.
ARG TORCH_INDEX=""
ENV OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY constraints-*.txt ./
COPY scripts/install_torch.sh scripts/
RUN scripts/install_torch.sh python cpu \
    && pip install --no-deps --require-hashes -r constraints-train.txt
COPY . .
RUN pip install --no-deps . && useradd --create-home agent
USER agent
WORKDIR /home/agent
ENTRYPOINT ["skillc"]
CMD ["--help"]
