# Two commands: `make demo` shows what wellread does, `make test` checks that it works.
# Each installs what is missing first (system packages only when root).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/wellread
# Outside the clone, so that clones share one build and `git clean` costs nothing.
export CARGO_TARGET_DIR ?= $(CACHE)/target
PYTHON_ENV ?= $(CACHE)/python
PROFILES_ENV ?= $(CACHE)/profiles
PYTHON_PACKAGE := $(CARGO_TARGET_DIR)/python
WELLREAD := $(CARGO_TARGET_DIR)/release/wellread
# Before a cargo that compiles: Clippy as the compiler of this workspace's crates.
CLIPPY := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
# Where the tests have DuckDB's library from: the package of that Python.
WITH_DUCKDB := WELLREAD_DUCKDB="$(PYTHON_ENV)/bin/python"
LIGHT_WELLREAD := $(CARGO_TARGET_DIR)-light/release/wellread
# Features of the crate `wellread`: the formats that need no engine.
LIGHT_FEATURES := wellread/parquet,wellread/tiff,wellread/ome-zarr,wellread/image-folder
DEMO_OUT ?= results/demo

.PHONY: help demo report-picture install test campaign check-targets engines-latest build build-light build-all lint check test-rust test-portable test-python test-wheel test-gpu python-env profiles-env python-package wheel bench-peers bench-plates bench-front bench-speed bench-remote bench-ray mdbook docs docs-rust reference figures release-check house system-packages engine-packages browser clean

help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# The demo shows the formats that build in minutes; once `make build` has made the whole program, the engines' too. DuckDB's
# library is that of the tests' Python where it is there and nothing else is named.
demo: ## measure formats, workers and tensor paths on generated cell images; ends with a report to open
	@if [[ -x "$(WELLREAD)" ]]; then $(MAKE) --no-print-directory build; else $(MAKE) --no-print-directory build-light; fi
	[[ -n "$${WELLREAD_DUCKDB:-}" || ! -x "$(PYTHON_ENV)/bin/python" ]] || export $(WITH_DUCKDB); \
	"$$( [[ -x "$(WELLREAD)" ]] && echo "$(WELLREAD)" || echo "$(LIGHT_WELLREAD)" )" bench all --images 384 --size 192x192 --kind cells --batch-size 16 --steps 50 --samples 32 --access random \
	  --transform augment --batch-sizes 16 --workers 0,2 --time-budget 100 --out $(DEMO_OUT)
	@echo
	@echo "Open $(DEMO_OUT)/report.html in a browser. Images: $(DEMO_OUT)/images.png; plots: $(DEMO_OUT)/*.png"
	@[[ -x "$(WELLREAD)" ]] || echo "This build leaves out Lance, Vortex, DuckDB, buckets and SQLite. \`make build\` makes the whole program in some 20 minutes, and \`make demo\` then compares them, too. DuckDB needs its library (pip install duckdb)."
	@echo "\`make install\` puts the program on your PATH. Try: wellread info $(DEMO_OUT)/data/images.parquet"

# After `make demo` on an idle machine.
report-picture: python-env browser ## docs/images/report.png, the picture of README.md, from the report of the demo
	"$(PYTHON_ENV)/bin/python" scripts/report-picture.py $(DEMO_OUT)/report.html docs/images/report.png

# `ARGS="--only segment_nuclei"` runs a part; `ARGS=--generated` leaves real images beside the clone alone.
examples: build python-package ## the gallery: six things to do with images of cells, a picture of each in results/gallery (installs PyTorch: large)
	scripts/python-env.sh "$(CACHE)/gallery" examples/gallery/requirements.txt
	[[ -n "$${WELLREAD_DUCKDB:-}" || ! -x "$(PYTHON_ENV)/bin/python" ]] || export $(WITH_DUCKDB); \
	WELLREAD="$(WELLREAD)" PYTHONPATH="$(PYTHON_PACKAGE)" "$(CACHE)/gallery/bin/python" examples/gallery/run_all.py --out results/gallery $(ARGS)

# A crate that is built alone is light. The builds of the workspace below have the engines without asking: the crate `wellread`
# has them by default.

# The program of `make build`: built alone, with `cargo install`, its dependencies have other features, and most compile once more.
install: build ## put the wellread command with all engines into cargo's bin folder
	@folder="$${CARGO_INSTALL_ROOT:-$${CARGO_HOME:-$$HOME/.cargo}}/bin"; mkdir -p "$$folder"; \
	install -m 755 "$(WELLREAD)" "$$folder/wellread"; echo "$$folder/wellread is this program now"

# Packages for the Python tests are fetched while the first build compiles, which takes longer than all else.
# Clippy is the compiler of this workspace's crates here, so that they compile once for lints and tests; `make build` has
# the compiler itself. Tests of Rust and of Python run one after the other: side by side, on two processors, they found
# budgets of seconds too short.
test: ## every test: format, lints, Rust, and cross-reading with the Python libraries
	@scripts/system-packages.sh tests
	cargo fmt --all --check
	$(CLIPPY) $(MAKE) --no-print-directory -j2 build-all python-env profiles-env browser mdbook
	$(CLIPPY) $(MAKE) --no-print-directory test-rust test-python

# A tree of its own, with incremental compilation: from a changed line to a tested result in a minute or two.
check: ## what most changes break: format, lints and tests of images, stores and loaders, without the engines
	@scripts/system-packages.sh light
	cargo fmt --all --check
	python3 scripts/house.py > /dev/null || python3 scripts/house.py
	CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)-light" $(CLIPPY) \
	  cargo test --profile quick --locked --lib --test it -p wellread-image -p wellread-store -p wellread-loader

build: engine-packages ## the wellread binary with all storage engines (a first build takes some 20 minutes on two cores)
	cargo build --release --locked --workspace --bins

# The formats that need no engine. In a target folder of its own, so that neither build undoes the other.
build-light: ## the wellread binary without the storage engines: some 8 minutes on two cores
	@scripts/system-packages.sh light
	CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)-light" cargo build --release --locked -p wellread-cli

# Clippy as the compiler of this workspace's crates: `cargo clippy` would check all 600 dependencies once more, which
# takes ten minutes, beside building them.
lint: engine-packages
	python3 scripts/prose.py
	python3 scripts/links.py
	cargo fmt --all --check
	$(CLIPPY) cargo build --release --locked --workspace --all-targets

# Binaries and tests in one go: building the command alone would compile shared crates twice. Without make's counting of jobs,
# of which cargo would have one alone while packages are installed beside it (make 4.4 and newer hand it on).
build-all: engine-packages
	MAKEFLAGS= MFLAGS= cargo build --release --locked --workspace --all-targets

test-rust: build-all python-env
	$(WITH_DUCKDB) cargo test --release --locked --workspace

# In the usual target folder, whose dependencies it shares. The program that it leaves there is replaced by the next `make build`.
test-portable: engine-packages python-env ## the Rust tests without the calls that only Linux has: the paths of other systems
	$(WITH_DUCKDB) cargo test --release --locked --workspace --features wellread-cli/portable

# Three files of tests at a time, also on two processors. A third of the time a file waits: for processes that start, for a
# slow link or for a limit to pass. Long files come first (tests/python/scheduling.py).
test-python: build-all python-env profiles-env python-package browser mdbook ## files cross-read with other libraries; the Python package
	"$(PYTHON_ENV)/bin/ruff" check python tests examples scripts benches fuzz
	"$(PYTHON_ENV)/bin/ruff" format --check python tests examples scripts benches fuzz
	WELLREAD="$(WELLREAD)" WELLREAD_PROFILES_PYTHON="$(PROFILES_ENV)/bin/python" PYTHONPATH="$(PYTHON_PACKAGE)" \
	  "$(PYTHON_ENV)/bin/python" -m pytest -q tests/python -n 3 --dist loadfile --no-loadscope-reorder --durations 30

# In an environment of its own, with neither sources nor builds of this clone on the path.
test-wheel: ## the tests of the Python package with the wheels in dist/ alone (make wheel); installs what the tests need once more
	scripts/python-env.sh "$(CACHE)/wheel" tests/python/requirements.txt
	"$(CACHE)/wheel/bin/uv" pip install --quiet --python "$(CACHE)/wheel/bin/python" --no-index --no-deps --reinstall --find-links dist \
	  wellread wellread-cli
	env -u PYTHONPATH -u CARGO_TARGET_DIR WELLREAD="$(CACHE)/wheel/bin/wellread" "$(CACHE)/wheel/bin/python" -m pytest -q \
	  tests/python/test_package_*.py -n 3 --dist loadfile --no-loadscope-reorder --durations 10

# No part of `make test`: a machine without a GPU collects no test here, which is an error. JAX would take most of the card.
test-gpu: build-all python-package ## what needs a CUDA GPU, with a Python that has torch for it: PYTHON=python3
	WELLREAD="$(WELLREAD)" PYTHONPATH="$(PYTHON_PACKAGE)" XLA_PYTHON_CLIENT_PREALLOCATE=false \
	  "$(or $(PYTHON),$(PYTHON_ENV)/bin/python)" -m pytest -q tests/python/gpu --durations 10

# Each kind of set has the same share. The small one is a test (tests/python/test_campaign.py, crates/wellread-cli/tests/mutations.rs).
campaign: build-all python-env python-package ## damage to sets of every format, kills, forks, links and nodes that fail: N=27000 SEED=1 SECONDS_MOST=0 KILLS=20 FAULTS=10000 RAY_SEEDS=20
	WELLREAD_MUTATIONS="$(or $(PER_SET),600)" $(WITH_DUCKDB) cargo test --release --locked --workspace --test mutations -- --nocapture
	WELLREAD="$(WELLREAD)" $(WITH_DUCKDB) PYTHONPATH="$(PYTHON_PACKAGE)" "$(PYTHON_ENV)/bin/python" fuzz/campaign.py $(if $(N),--n $(N)) \
	  --seed "$(or $(SEED),1)" --seconds "$(or $(SECONDS_MOST),0)" --kills "$(or $(KILLS),20)" --out "$(or $(OUT),results/campaign)"
	WELLREAD="$(WELLREAD)" WELLREAD_FAULTS="$(or $(FAULTS),10000)" PYTHONPATH="$(PYTHON_PACKAGE)" "$(PYTHON_ENV)/bin/python" -m pytest -q \
	  tests/python/test_remote_faults.py
	WELLREAD="$(WELLREAD)" $(WITH_DUCKDB) PYTHONPATH="$(PYTHON_PACKAGE)" "$(PYTHON_ENV)/bin/python" fuzz/ray_kills.py \
	  --seeds "$(or $(RAY_SEEDS),20)" --out "$(or $(OUT),results/campaign)"

# No pins, unlike tests/python/requirements.txt: what a user gets who installs these today.
engines-latest: build python-env ## files by the newest PyPI release of each engine, read by wellread; which stamps to raise
	scripts/newest-packages.sh "$(CACHE)/engines-latest" pylance vortex-data duckdb pyarrow ome-arrow
	WELLREAD="$(WELLREAD)" $(WITH_DUCKDB) "$(CACHE)/engines-latest/bin/python" scripts/engines_latest.py $(ARGS)

# It takes the native module that `build-all` has left: maturin would compile everything once more.
python-package: build-all
	scripts/python-package.sh "$(CARGO_TARGET_DIR)/release/lib_native.so" "$(PYTHON_PACKAGE)"

# In an environment with maturin alone. The licences of all crates come into the wheels afterwards: maturin packs files of the
# sources only.
wheel: system-packages ## wheels of the Python package and of the command, both with all engines, in dist/
	scripts/python-env.sh "$(CACHE)/maturin" packaging/requirements.txt
	"$(CACHE)/maturin/bin/maturin" build --release --locked --features engines --out dist
	"$(CACHE)/maturin/bin/maturin" build --release --locked --features engines --out dist --manifest-path crates/wellread-cli/Cargo.toml
	python3 scripts/third_party.py --into dist/*.whl

python-env: system-packages ## the Python environment of the tests
	scripts/python-env.sh "$(PYTHON_ENV)" tests/python/requirements.txt

# CytoTable and pycytominer, which need an older pandas than the other tests.
profiles-env: system-packages ## the Python environment that writes tables of single cells for the tests
	scripts/python-env.sh "$(PROFILES_ENV)" tests/python/profiles-requirements.txt

mdbook: system-packages ## what makes the site of the documentation (compiles once, some minutes)
	@scripts/mdbook.sh "$(CACHE)/mdbook" >/dev/null

browser: system-packages ## a Chromium, in which the tests open reports
	@scripts/browser.sh

# `ARGS="--sets 1080 --only tensorstore"` measures a part; `ARGS=--prepare` only writes the sets.
bench-peers: system-packages build python-package ## compare with torch DataLoader + tifffile, zarr-python, tensorstore … (installs PyTorch: large)
	scripts/python-env.sh "$(CACHE)/peers" benches/peers/requirements.txt
	WELLREAD="$(WELLREAD)" WELLREAD_DUCKDB="$(CACHE)/peers/bin/python" PYTHONPATH="$(PYTHON_PACKAGE)" "$(CACHE)/peers/bin/python" benches/peers/compare.py \
	  --out results/peers $(ARGS)

bench-plates: system-packages build python-package ## sites, crops of cells, views and opening beside tifffile, zarr-python, tensorstore (8 GB of disk)
	scripts/python-env.sh "$(CACHE)/peers" benches/peers/requirements.txt
	WELLREAD="$(WELLREAD)" PYTHONPATH="$(PYTHON_PACKAGE)" "$(CACHE)/peers/bin/python" benches/plates.py --out results/plates.json $(ARGS)

bench-front: system-packages build python-package ## README's first picture: images/s into PyTorch by loader, equal codecs (10 GB of disk)
	scripts/python-env.sh "$(CACHE)/peers" benches/peers/requirements.txt
	WELLREAD="$(WELLREAD)" PYTHONPATH="$(PYTHON_PACKAGE)" "$(CACHE)/peers/bin/python" benches/front.py --out results/front.json $(ARGS)

# Needs no Python packages.
bench-speed: system-packages build ## the loader beside the limits of the machine, by format: docs/speed.md (5 GB of disk, an hour)
	$(WITH_DUCKDB) python3 benches/speed.py --wellread "$(WELLREAD)" --out results/speed.json $(ARGS)

# `ARGS="--only a --latency 20 --formats parquet --peers pylance"` measures a part.
bench-remote: build-all python-package ## sets in a bucket over a slow link beside zarr-python, pylance, tifffile, LitData … (30 GB of disk)
	scripts/python-env.sh "$(CACHE)/remote" benches/remote/requirements.txt
	WELLREAD="$(WELLREAD)" PYTHONPATH="$(PYTHON_PACKAGE)" "$(CACHE)/remote/bin/python" benches/remote.py --out results/remote.json $(ARGS)

# `ARGS="--only read --kinds small --rounds 6"` measures a part.
bench-ray: build-all python-package ## a Ray cluster of two processors: wellread.ray.read beside Ray Data's readers, --on ray beside one process (10 GB of disk)
	scripts/python-env.sh "$(CACHE)/ray" benches/on_ray/requirements.txt
	WELLREAD="$(WELLREAD)" PYTHONPATH="$(PYTHON_PACKAGE)" "$(CACHE)/ray/bin/python" benches/on_ray.py --out results/on-ray.json $(ARGS)

docs: ## the documentation as a site, in results/docs (compiles mdbook once, a few minutes)
	"$$(scripts/mdbook.sh "$(CACHE)/mdbook")" build docs
	@echo "Open results/docs/index.html in a browser."

# After `make docs`, which empties its folder. Without the engines, which take long to compile and add no public names.
docs-rust: ## the Rust API in results/docs/rust (compiles the light crates' dependencies, a few minutes)
	CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)-light" cargo doc --locked --no-deps -p wellread -p wellread-loader -p wellread-store \
	  -p wellread-image -p wellread-trace --no-default-features --features $(LIGHT_FEATURES)
	rm -rf results/docs/rust && mkdir -p results/docs
	cp -r "$(CARGO_TARGET_DIR)-light/doc" results/docs/rust
	@echo "Open results/docs/rust/wellread/index.html in a browser."

reference: ## pages of commands, of the Python package and of support, from the built program, its sources and trials of it
	python3 scripts/command-reference.py "$(WELLREAD)" docs
	python3 scripts/python-reference.py --write
	$(WITH_DUCKDB) python3 scripts/support-tables.py "$(WELLREAD)" --write

figures: ## the tables of README.md, docs/peers*.md and docs/scale.md, from the result files in docs/results
	python3 scripts/figures.py --write
	python3 benches/scale.py --write docs/scale.md

house: ## lines of each crate, long files, imports in circles (none may be left)
	@python3 scripts/house.py $(ARGS)

# `rustup target add aarch64-apple-darwin x86_64-pc-windows-gnu` gives it targets.
check-targets: ## whether the command compiles for the other systems that rustup has targets of
	CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)" scripts/check-targets.sh $(ARGS)

# `ARGS=--verify` compiles every crate as it would be published, too: a long time.
release-check: ## what has to hold before a release: versions, metadata, licences, workflows, wheels in dist/
	@scripts/release-check.sh $(ARGS)

engine-packages:
	@scripts/system-packages.sh engines

# After the other, so that two of them never install at once.
system-packages: engine-packages
	@scripts/system-packages.sh

clean: ## remove results (builds live in $(CARGO_TARGET_DIR))
	rm -rf results
