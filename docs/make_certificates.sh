#!/usr/bin/env bash
# Make an authority of your own and one certificate for scheduler, workers and app, in FOLDER.
# Whoever has ca.crt, lab.crt and lab.key is let in: copy them to your machines and nowhere else.
set -euo pipefail
cd "${1:?usage: make_certificates.sh FOLDER}"
umask 077
openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj "/CN=wordlm authority" \
  -keyout ca.key -out ca.crt 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj "/CN=wordlm lab" -keyout lab.key -out lab.csr 2>/dev/null
openssl x509 -req -in lab.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -out lab.crt \
  2>/dev/null
rm lab.csr
