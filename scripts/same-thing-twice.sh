#!/usr/bin/env bash
# same-thing-twice.sh WELLREAD OUT [PROCESSES] [SPLITS]: how often `compare` gives a verdict where there is nothing to find.
# The same benchmark is measured in PROCESSES (20) processes, one after the other; SPLITS (200) times five of them, drawn at
# random, are compared with five others. Prints how many tables and rows had a verdict; at most 5 % of tables should.
set -euo pipefail
wellread=$1 out=$2 processes=${3:-20} splits=${4:-200}
mkdir -p "$out"
[[ -d "$out/set" ]] || "$wellread" --quiet generate "$out/set" --images 256 --size 100x100 --formats tiff,parquet,ome-zarr
for i in $(seq "$processes"); do
  [[ -d "$out/$i" ]] || "$wellread" --quiet bench dataset --input "$out/set/tiff" --formats tiff,parquet,ome-zarr --access random \
    --transform none --cache none --repeats 7 --data-dir "$out/data" --out "$out/$i" >/dev/null
done
tables=0 rows=0 all=0
for seed in $(seq "$splits"); do
  mapfile -t drawn < <(seq -f "$out/%g" "$processes" | shuf -n 10 --random-source=<(yes "$seed"))
  said=$("$wellread" --json compare "${drawn[@]:0:5}" -- "${drawn[@]:5:5}" 2>/dev/null) || [[ $? -eq 3 ]]
  found=$(grep -cE '"verdict": ?"(slower|faster)"' <<<"$said" || true)
  all=$((all + $(grep -cE '"verdict":' <<<"$said" || true))) rows=$((rows + found)) tables=$((tables + (found > 0)))
done
echo "a verdict on $tables of $splits tables, on $rows of $all rows"
