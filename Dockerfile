# syntax=docker/dockerfile:1
FROM python:3.11-slim

# CPU wheels of torch are several GB smaller; name an index that has them, or a mirror.
ARG TORCH_INDEX=""

RUN useradd --create-home --uid 10001 lab
WORKDIR /srv/wordlm-lab
COPY requirements.txt .
RUN pip install --no-cache-dir ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -r requirements.txt
COPY LICENSE README.md pyproject.toml ./
COPY .streamlit .streamlit
COPY wordlm_core wordlm_core
COPY app app
COPY pages pages
COPY artifacts artifacts

ENV OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Jobs and uploads: a volume, so that they outlive the container.
RUN mkdir /srv/runs && chown lab:lab /srv/runs
ENV WORDLM_RUNS=/srv/runs
VOLUME /srv/runs
USER lab
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=2)"]
CMD ["python", "-m", "app", "--server.port", "8501"]
