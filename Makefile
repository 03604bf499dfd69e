# One command each: `make demo` shows what it is for, `make test` checks everything. Each installs the Debian packages
# that it needs and that are missing, and builds in ./build.

BUILD ?= build
JOBS ?= $(shell nproc)

.PHONY: build setup emulated configure configure-tests demo test bench-check bench-tools bench bench-peers bench-pool wheel fuzz oracle \
  torch-check check-asan check-tsan ide-edits editors-check pages-check editor-words tree-sitter vscode site-tools site site-check \
  ide-renames grammars-check protocol-check vscode-check recordings playground playground-check reference \
  coverage format clean

# The compiler and its libraries.
build: configure
	cmake --build $(BUILD) -j $(JOBS) --target ein einlang einlang_rt

setup:
	tools/setup.sh

configure: setup
	@test -f $(BUILD)/build.ninja || cmake -S . -B $(BUILD) -G Ninja -DEIN_TESTS=OFF

configure-tests:
	tools/setup.sh tests
	@grep -qs '^EIN_TESTS:BOOL=ON' $(BUILD)/CMakeCache.txt || cmake -S . -B $(BUILD) -G Ninja -DEIN_TESTS=ON

# Draws digits, trains a convolutional network on them, and prints the derivative of one layer as source.
EIN = $(abspath $(BUILD))/ein
DIGITS = $(CURDIR)/examples/digits
demo: configure
	cmake --build $(BUILD) -j $(JOBS) --target ein
	mkdir -p $(BUILD)/demo
	$(EIN) grad $(DIGITS)/layer.ein
	cd $(BUILD)/demo && $(EIN) run $(DIGITS)/generate.ein && start=$$(date +%s) && \
	  $(EIN) run $(DIGITS)/cnn.ein && echo "seconds $$(($$(date +%s) - start))"

# ctest prints the seconds of every suite.
test: configure-tests
	cmake --build $(BUILD) -j $(JOBS)
	ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-tests=error

# The Python package as a wheel in build/wheels, checked as somebody gets it who has Python alone. Takes as long as a build.
wheel: setup
	tools/setup.sh python3 python3-venv python3-dev binutils
	python3 -B tools/python_environment.py $(BUILD)/environment
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(BUILD)/environment/bin/pip wheel . --quiet --no-deps --no-build-isolation \
	  --wheel-dir $(BUILD)/wheels -Cbuild-dir=$(BUILD)/wheel
	$(BUILD)/environment/bin/python -B tests/python/check_wheel.py $$(ls -t $(BUILD)/wheels/einlang-*.whl | head -1)

# How fast `ein check` is, in lines per second; measures, asserts nothing.
bench-check: build
	tools/setup.sh python3
	python3 bench/check.py $(BUILD)/ein --json $(BUILD)/bench-check.json

# How long the language server takes to answer; measures, asserts nothing.
bench-tools: build
	tools/setup.sh python3
	python3 -B bench/tools.py $(BUILD)/ein --json $(BUILD)/bench-tools.json

# The pages of `ein explain --html` and `ein audit --html` in Chromium, at the widths of a phone and of a desk, light and dark.
pages-check: build
	tools/setup.sh python3 chromium
	python3 -B tests/pages_check.py . $(BUILD)/ein

# Ten thousand random edits through the language server.
IDE_EDITS ?= 10000
ide-edits: build
	tools/setup.sh python3
	python3 -B tests/ide/random_edits.py $(BUILD)/ein --count $(IDE_EDITS) --seed 7

# A new name for every name of every program, and what the program reports and prints then.
ide-renames: build
	tools/setup.sh python3
	python3 -B tests/ide/renames.py $(BUILD)/ein --count 0

# The language server with Neovim and Emacs, which this installs.
editors-check: build
	tools/setup.sh python3 neovim emacs-nox elpa-eglot
	python3 -B tests/ide/editors.py $(BUILD)/ein

# The language server with the client library of Visual Studio Code. Needs Node and npm's registry.
protocol-check: build
	tools/setup.sh python3
	mkdir -p $(BUILD)/protocol
	cd $(BUILD)/protocol && npm install --silent --no-audit --no-fund \
	  vscode-languageserver-protocol@3.18.5 vscode-languageserver-textdocument@1.0.16
	node tests/ide/protocol_types.js $(BUILD)/ein $(BUILD)/protocol --edits $(IDE_EDITS)

# The language server with Visual Studio Code's own editor and client library, in Chromium. Needs Node 20 and npm's registry.
# Screenshots: build/vscode-check/screenshots.
vscode-check: build
	tools/setup.sh chromium fonts-dejavu-core
	mkdir -p $(BUILD)/vscode-check
	cp tests/ide/vscode/package.json $(BUILD)/vscode-check
	cd $(BUILD)/vscode-check && npm install --silent --no-audit --no-fund
	node tests/ide/vscode/check.mjs $(BUILD)/ein $(BUILD)/vscode-check

# What people see, as animated PNGs in build/recordings: a mistake and its fix, a derivative on hover, a coordinate renamed, a number
# dragged; and a session in Neovim, for `asciinema play`.
RECORDINGS = $(abspath $(BUILD))/recordings
recordings: vscode-check playground
	tools/setup.sh python3 neovim
	mkdir -p $(RECORDINGS)
	for name in fix derivative renamed; do \
	  EIN_RECORDINGS=$(RECORDINGS) node tests/ide/vscode/check.mjs $(BUILD)/ein $(BUILD)/vscode-check $$name || exit 1; done
	for name in fixed dragged; do \
	  EIN_RECORDINGS=$(RECORDINGS) node tests/web/page.mjs $(BUILD)/ein $(BUILD)/web $(BUILD)/playground/node_modules $$name || exit 1; done
	python3 -B tests/ide/record_neovim.py $(BUILD)/ein $(RECORDINGS)/neovim.cast

# The grammars of the editors see in every program what the lexer sees, and in 1,000 random ones. Needs Node and npm's registry.
grammars-check: configure-tests build
	tools/setup.sh python3 git neovim emacs-nox libtree-sitter-dev
	mkdir -p $(BUILD)/grammars
	cd $(BUILD)/grammars && npm install --silent --no-audit --no-fund vscode-textmate@9.3.2 vscode-oniguruma@2.0.1
	cc -O1 -Ieditors/tree-sitter/src tests/ide/tree_sitter.c editors/tree-sitter/src/parser.c editors/tree-sitter/src/scanner.c -ltree-sitter -o $(BUILD)/grammars/see
	cmake --build $(BUILD) -j $(JOBS) --target fuzz_programs
	python3 -B tests/ide/grammars.py $(BUILD)/ein --textmate $(BUILD)/grammars --vim --emacs --tree-sitter $(BUILD)/grammars/see \
	  --random $(BUILD)/tests/fuzz_programs

# The lists of words in editors/, from those of the compiler.
editor-words:
	python3 -B tools/editor_words.py .

# The parser of editors/tree-sitter from its grammar. Compiles tree-sitter's generator from Debian's sources the first time. Needs Node.
tree-sitter:
	tools/tree_sitter.sh . $(BUILD)/tree-sitter

# The extension for Visual Studio Code: build/vscode/einlang.vsix. Needs Node 20 and npm's registry.
vscode:
	rm -rf $(BUILD)/vscode
	mkdir -p $(BUILD)
	cp -r editors/vscode $(BUILD)/vscode
	cd $(BUILD)/vscode && npm install --silent --no-audit --no-fund && npm run --silent package
	@size=$$(stat -c %s $(BUILD)/vscode/einlang.vsix); echo "$(BUILD)/vscode/einlang.vsix: $$size bytes"; test $$size -le 409600

# The pages of docs/ as a site: build/site, for any web server (`python3 -m http.server -d build/site`). Needs Node 20 and npm's
# registry. Programs have Run and Open when `make playground` has filled build/web.
SITE = $(abspath $(BUILD))/site-tools
site-tools:
	mkdir -p $(SITE)
	@cmp -s tools/site/package.json $(SITE)/package.json || rm -rf $(SITE)/node_modules
	cp -r tools/site/. $(SITE)
	@test -d $(SITE)/node_modules || (cd $(SITE) && npm install --silent --no-audit --no-fund) || \
	  { rm -rf $(SITE)/node_modules; echo "site: npm cannot install what tools/site/package.json names" >&2; exit 1; }

site: site-tools
	node $(SITE)/site.mjs . $(BUILD)/site $(BUILD)/web

# The site in Chromium, with a stand-in for the playground and with the real one where it was made; and every program that has a Run.
site-check: site-tools build
	tools/setup.sh chromium fonts-dejavu-core
	node $(SITE)/check.mjs . $(BUILD)/site-check $(BUILD)/ein $$(command -v chromium) $(BUILD)/web

# The playground: build/web/index.html with what it loads, and playground.html, which is everything in one file. Needs
# Node 20 and npm's registry; the compiler itself does not.
WASM_PACKAGES = cmake ninja-build clang-19 lld-19 llvm-19 wasi-libc libc++-19-dev-wasm32 libc++abi-19-dev-wasm32 \
  libclang-rt-19-dev-wasm32 libfmt-dev nlohmann-json3-dev
playground:
	@command -v npm > /dev/null || { echo "make playground needs Node 20 with npm, for the page's editor" >&2; exit 1; }
	tools/setup.sh $(WASM_PACKAGES)
	@test -f $(BUILD)/wasm/build.ninja || cmake -S . -B $(BUILD)/wasm -G Ninja --toolchain cmake/wasm_toolchain.cmake -DCMAKE_BUILD_TYPE=Release
	cmake --build $(BUILD)/wasm -j $(JOBS) --target ein_web
	mkdir -p $(BUILD)/playground
	cp -r web/. $(BUILD)/playground
	cd $(BUILD)/playground && npm install --loglevel=error --no-audit --no-fund
	test $(BUILD)/playground/ein.wasm -nt $(BUILD)/wasm/ein_web.wasm || \
	  $(BUILD)/playground/node_modules/.bin/wasm-opt -O2 --shrink-level=2 --enable-exception-handling --enable-bulk-memory \
	    --enable-nontrapping-float-to-int --enable-sign-ext --enable-mutable-globals --enable-reference-types \
	    --enable-multivalue $(BUILD)/wasm/ein_web.wasm -o $(BUILD)/playground/ein.wasm
	node $(BUILD)/playground/build.mjs . $(BUILD)/playground/ein.wasm $(BUILD)/web

# The playground in Chromium, and its answers beside those of the reference evaluator.
playground-check: playground build
	tools/setup.sh chromium fonts-dejavu-core
	node tests/web/same_answers.mjs $(BUILD)/ein $(BUILD)/web/ein.wasm
	node tests/web/page.mjs $(BUILD)/ein $(BUILD)/web $(BUILD)/playground/node_modules

# Every workload of the table, for us and for the peers that are installed.
bench: build
	tools/setup.sh python3 python3-numpy
	$(if $(wildcard bench/.venv),bench/.venv/bin/python,python3) -B bench/run.py $(BUILD)/ein \
	  --json $(BUILD)/bench.json --svg $(BUILD)/bench.svg

# The peers, from PyPI: NumPy, JAX, Numba, Warp and PyTorch. PyPI's wheel of PyTorch brings libraries for graphics cards along,
# 6 GB in all; TORCH_INDEX names an index that has one without.
bench-peers:
	tools/setup.sh python3-venv
	python3 -m venv bench/.venv
	bench/.venv/bin/pip install --quiet numpy jax numba warp-lang
	bench/.venv/bin/pip install --quiet $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch

# Half an hour of each fuzzer; what it learns stays in the build folder, what it finds too.
FUZZ_SECONDS ?= 1800
fuzz: configure-tests
	cmake --build $(BUILD) -j $(JOBS) --target fuzzers
	for target in fuzz_parser fuzz_checker; do \
	  python3 fuzz/run.py $(BUILD)/fuzz/$$target --seconds $(FUZZ_SECONDS) \
	    --corpus $(BUILD)/fuzz/corpus_$$target --found $(BUILD)/fuzz/found || exit 1; done

# A hundred thousand programs against the oracle, with the classes that were drawn.
ORACLE_COUNT ?= 100000
oracle: configure-tests
	cmake --build $(BUILD) -j $(JOBS) --target fuzz_oracle
	$(BUILD)/tests/fuzz_oracle --count $(ORACLE_COUNT) --seed 100001 --jobs $(JOBS) --classes

# Every file test as a GPU would compute it; on a machine with one, tools/gpu.sh does more.
emulated: build
	python3 -B tests/run.py $(BUILD)/ein --only emulated -j $(JOBS)

# The library beside PyTorch, which must be installed.
torch-check: build
	python3 tests/stdlib/against_torch.py $(BUILD)/ein

# The same tests under the address and undefined-behaviour sanitizers, in a build of their own.
check-asan:
	tools/setup.sh tests
	@test -f $(BUILD)-asan/build.ninja || cmake -S . -B $(BUILD)-asan -G Ninja -DEIN_SANITIZE=ON
	cmake --build $(BUILD)-asan -j $(JOBS)
	ctest --test-dir $(BUILD)-asan -j $(JOBS) --output-on-failure --no-tests=error

# The tests of what threads share, under the thread sanitizer.
check-tsan:
	tools/setup.sh tests
	@test -f $(BUILD)-tsan/build.ninja || cmake -S . -B $(BUILD)-tsan -G Ninja -DEIN_THREAD_SANITIZE=ON
	cmake --build $(BUILD)-tsan -j $(JOBS) --target pool_tests
	TSAN_OPTIONS=die_after_fork=0 $(BUILD)-tsan/tests/pool_tests --gtest_brief=1

# What sharing a loop costs; measures, asserts nothing.
bench-pool: configure-tests
	cmake --build $(BUILD) -j $(JOBS) --target bench_pool
	$(BUILD)/tests/bench_pool

# The pages of docs/library, from the doc comments of stdlib/.
reference: build
	tools/setup.sh python3
	python3 -B tests/meta/library_pages.py . $(BUILD)/ein --write

# docs/library/coverage.md: every function of the library against differences, a minute of work.
coverage: build
	tools/setup.sh python3 python3-numpy
	python3 -B tests/stdlib/coverage.py . $(BUILD)/ein --write

format:
	tools/setup.sh clang-format python3
	python3 -B tests/meta/format.py . --write

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan
