#!/usr/bin/env bash
# same-thing-twice.sh WELLREAD OUT [PROCESSES] [SPLITS] [dataset|dataloader]: how often `compare` gives a verdict where
# there is nothing to find. One benchmark is measured in PROCESSES (20) processes, one after the other. SPLITS (200) times
# five of them, drawn at random, are compared with five others. Then five that ran after each other are compared with the
# next five, as a user does who measures A before B. Prints how many tables and rows had a verdict; at most 5 % should.
set -euo pipefail
wellread=$1 out=$2 processes=${3:-20} splits=${4:-200} benchmark=${5:-dataset}
case $benchmark in
  dataset) options=(--access random --transform none --cache none) ;;
  dataloader) options=(--batch-sizes 16 --workers 2) ;;
  *) echo "$benchmark: neither dataset nor dataloader" >&2; exit 2 ;;
esac
mkdir -p "$out/$benchmark"
[[ -d "$out/set" ]] || "$wellread" --quiet generate "$out/set" --images 256 --size 100x100 --formats tiff,parquet,ome-zarr
for i in $(seq "$processes"); do
  [[ -d "$out/$benchmark/$i" ]] || "$wellread" --quiet bench "$benchmark" --input "$out/set/tiff" \
    --formats tiff,parquet,ome-zarr "${options[@]}" --repeats 7 --data-dir "$out/data" --out "$out/$benchmark/$i" >/dev/null
done

# Compares the first five of ten folders with the others, and counts.
count() {
  local said found
  said=$("$wellread" --json compare "${@:1:5}" -- "${@:6:5}" 2>/dev/null) || [[ $? -eq 3 ]]
  found=$(grep -cE '"verdict": ?"(slower|faster)"' <<<"$said" || true)
  all=$((all + $(grep -cE '"verdict":' <<<"$said" || true))) rows=$((rows + found)) tables=$((tables + (found > 0)))
}

tables=0 rows=0 all=0
for seed in $(seq "$splits"); do
  mapfile -t drawn < <(seq -f "$out/$benchmark/%g" "$processes" | shuf -n 10 --random-source=<(yes "$seed"))
  count "${drawn[@]}"
done
echo "at random: a verdict on $tables of $splits tables, on $rows of $all rows"
tables=0 rows=0 all=0 windows=0
for first in $(seq $((processes - 9))); do
  mapfile -t drawn < <(seq -f "$out/$benchmark/%g" "$first" $((first + 9)))
  count "${drawn[@]}"
  windows=$((windows + 1))
done
echo "one after the other: a verdict on $tables of $windows tables, on $rows of $all rows"
