# The image of brokers and of the lab: `isr`, no Java, no Spark, nobody's root.
# Packages are those of requirements.lock, by their hashes, less what only tests and analysis need.
FROM python:3.11-slim-bookworm AS packages
COPY requirements.lock /tmp/
RUN awk '/^[a-z]/ { split($1, name, "=="); \
         keep = name[1] !~ /^(pyspark|py4j|pyarrow|matplotlib|numpy|pillow|contourpy|cycler|fonttools|kiwisolver|pyparsing|python-dateutil|hypothesis|mypy|ruff|pytest|pytest-xdist|import-linter|grimp|execnet|kafka-python|pywin32|colorama|ast-serialize|librt)$/ } keep' \
        /tmp/requirements.lock > /tmp/image.lock && \
    python -m venv /opt/isr && \
    /opt/isr/bin/pip install --no-cache-dir --no-deps --require-hashes -r /tmp/image.lock
COPY pyproject.toml README.md /src/
COPY emulator /src/emulator
COPY zk /src/zk
COPY scenarios /src/scenarios
RUN /opt/isr/bin/pip install --no-cache-dir --no-deps --no-index --no-build-isolation /src && \
    /opt/isr/bin/pip uninstall -y hatchling trove-classifiers setuptools

FROM python:3.11-slim-bookworm AS isr
RUN groupadd --gid 10001 isr && useradd --uid 10001 --gid isr --create-home isr && \
    mkdir /data /traces /runs && chown isr:isr /data /traces /runs
COPY --from=packages /opt/isr /opt/isr
ENV PATH=/opt/isr/bin:$PATH PYTHONUNBUFFERED=1
USER isr
WORKDIR /runs
VOLUME ["/data", "/traces"]
ENTRYPOINT ["isr"]
