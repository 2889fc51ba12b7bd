#!/usr/bin/env bash
# Makes docs/batch.svg from a run of examples/batch. Needs script(1) of util-linux.
set -euo pipefail
cd "$(dirname "$0")/../examples/batch"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset MINUTES_BASE_URL MINUTES_API_KEY
go build -o "$dir/batch" .
(cd "$dir" && script --quiet --return --log-out typescript --log-timing timing --command 'stty cols 84 rows 30 && ./batch -out minutes' </dev/null >/dev/null)
cd ../..
go run ./docs terminal 'go run . -out minutes' "$dir/typescript" "$dir/timing" >"$dir/batch.svg"
mv "$dir/batch.svg" docs/batch.svg
