#!/usr/bin/env bash
# Installs what is missing of deploy/dev/packages.txt. Prints one line; apt's output goes to a log, shown only if it fails.
# With --if-root, as other verbs call it: nothing is said when nothing is missing, and nothing is done by who may not install.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"

mapfile -t wanted < <(grep -v '^#' packages.txt | tr -s ' ' '\n' | sed '/^$/d')
missing=()
for package in "${wanted[@]}"; do
  status="$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null || true)"
  [[ "$status" == installed ]] || missing+=("$package")
done

if [[ "${1:-}" == --if-root ]] && { [[ ${#missing[@]} -eq 0 ]] || [[ "$(id -u)" -ne 0 ]]; }; then
  exit 0
fi
if [[ ${#missing[@]} -gt 0 ]]; then
  if [[ "$(id -u)" -ne 0 ]]; then
    echo "setup: as root, please: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  log="$(mktemp -t cairn-setup.XXXXXX)"
  trap 'rm -f "$log"' EXIT
  export DEBIAN_FRONTEND=noninteractive
  # No recommends: they would bring documentation and a second compiler.
  if ! { apt-get update -q && apt-get install -q -y --no-install-recommends "${missing[@]}"; } < /dev/null > "$log" 2>&1; then
    tail -n 30 "$log" >&2
    echo "setup: could not install: ${missing[*]}" >&2
    exit 1
  fi
fi

# The builds of four presets side by side need about 3 GB; ccache's default limit of 5 would evict one for another.
limit="$(ccache --get-config max_size)"
number="${limit%%[^0-9]*}"
if [[ "$limit" == *G && "$number" -lt 10 && "$number" -gt 0 ]] || [[ "$limit" == *M ]]; then
  ccache --max-size 10G > /dev/null
fi
echo "setup: ${#missing[@]} packages installed, $((${#wanted[@]} - ${#missing[@]})) were there"
