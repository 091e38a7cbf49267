# skillc-gym on processors: docker build -t skillc-gym . && docker run --rm -v "$PWD/runs:/home/agent/runs" skillc-gym demo --quick
FROM python:3.11-slim
# An index with the CPU build of torch, where the default one has none.
ARG TORCH_INDEX=""
ENV OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY constraints-cpu.txt constraints-train.txt ./
RUN pip install -c constraints-cpu.txt ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} torch \
    && pip install --no-deps --require-hashes -r constraints-train.txt
COPY . .
RUN pip install --no-deps . && useradd --create-home agent
USER agent
WORKDIR /home/agent
ENTRYPOINT ["skillc"]
CMD ["--help"]
