# Two images. `isr`: brokers and the lab, no Java, no Spark, nobody's root. `spark`: that, with Java
# and Spark, for masters, workers and drivers of `isr sweep` and `isr analyze`.
# Packages are those of requirements.lock, by their hashes, less what only tests need.
FROM python:3.11-slim-bookworm AS light
COPY requirements.lock /tmp/
RUN awk -v heavy='^(pyspark|py4j|pyarrow|matplotlib|numpy|pillow|contourpy|cycler|fonttools|kiwisolver|pyparsing|python-dateutil)$' \
        -v tests='^(hypothesis|mypy|ruff|pytest|pytest-xdist|import-linter|grimp|execnet|kafka-python|pywin32|colorama|ast-serialize|librt)$' \
        '/^[a-z]/ { split($1, name, "=="); \
           to = name[1] ~ tests ? "/dev/null" : name[1] ~ heavy ? "/tmp/heavy.lock" : "/tmp/light.lock" } \
         to { print > to }' /tmp/requirements.lock && \
    python -m venv /opt/isr && \
    /opt/isr/bin/pip install --no-cache-dir --no-deps --require-hashes -r /tmp/light.lock
COPY pyproject.toml README.md /src/
COPY emulator /src/emulator
COPY zk /src/zk
COPY scenarios /src/scenarios
RUN /opt/isr/bin/pip install --no-cache-dir --no-deps --no-index --no-build-isolation /src && \
    /opt/isr/bin/pip uninstall -y hatchling trove-classifiers setuptools

FROM python:3.11-slim-bookworm AS place
RUN groupadd --gid 10001 isr && useradd --uid 10001 --gid isr --create-home isr && \
    mkdir /data /traces /runs && chown isr:isr /data /traces /runs
ENV PATH=/opt/isr/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /runs
VOLUME ["/data", "/traces"]
ENTRYPOINT ["isr"]

FROM place AS isr
COPY --from=light /opt/isr /opt/isr
USER isr

FROM python:3.11-slim-bookworm AS heavy
COPY --from=light /tmp/heavy.lock /tmp/light.lock /tmp/
RUN python -m venv /opt/isr && \
    grep -A 9 '^setuptools' /tmp/light.lock | awk '/^[a-z]/ { keep = $1 ~ /^setuptools/ } keep' >/tmp/build.lock && \
    /opt/isr/bin/pip install --no-cache-dir --no-deps --require-hashes -r /tmp/build.lock && \
    /opt/isr/bin/pip install --no-cache-dir --no-deps --no-build-isolation --require-hashes -r /tmp/heavy.lock && \
    /opt/isr/bin/pip uninstall -y setuptools

# What is large comes first: a change of the project's own files copies the small layer alone.
FROM place AS spark
RUN command -v java >/dev/null || { apt-get -q update && \
        apt-get -q -y --no-install-recommends install openjdk-17-jre-headless && \
        rm -rf /var/lib/apt/lists/*; }
COPY --from=heavy /opt/isr /opt/isr
COPY --from=light /opt/isr /opt/isr
USER isr
