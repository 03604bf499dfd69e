#!/bin/sh
# Writes editors/tree-sitter/src from grammar.js. Usage: tree_sitter.sh ROOT FOLDER   (FOLDER keeps the generator)
#
# tree-sitter's generator is no package of Debian's, but the source of the package `tree-sitter` has it, and all that it needs is
# packaged: it is compiled once, with cargo and without a network. Needs Node, which evaluates the grammar.
set -eu
root=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
version=0.20.7

if [ ! -x "$folder/generate" ]; then
  "$root/tools/setup.sh" cargo dpkg-dev librust-aho-corasick-dev librust-anyhow-dev librust-indexmap-dev librust-lazy-static-dev \
    librust-log-dev librust-regex+default-dev librust-regex-syntax-dev librust-rustc-hash-dev librust-semver-dev librust-serde-derive-dev \
    librust-serde-json-dev librust-smallbitvec-dev
  cd "$folder"
  mkdir -p lists/partial archives/partial
  echo "deb-src http://deb.debian.org/debian bookworm main" > sources.list
  own="-o APT::Sandbox::User=root -o Dir::Etc::SourceList=$folder/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$folder/lists"
  # shellcheck disable=SC2086
  apt-get -qq $own -o Dir::Cache="$folder/archives" update
  # shellcheck disable=SC2086
  apt-get -qq $own -o Dir::Cache="$folder/archives" source --download-only tree-sitter=$version-1
  tar xf tree-sitter_$version.orig.tar.xz
  mkdir -p crate/src crate/.cargo
  rm -rf crate/src/generate
  cp -r tree-sitter-$version/cli/src/generate crate/src
  sed -i 's/\btree_sitter::/crate::tree_sitter::/' crate/src/generate/mod.rs crate/src/generate/render.rs
  cat > crate/Cargo.toml << EOF
[package]
name = "generate"
version = "$version"
edition = "2021"

[dependencies]
anyhow = "1"
indexmap = "1"
lazy_static = "1"
log = "0.4"
regex = "1"
regex-syntax = "0.6"
rustc-hash = "1"
semver = "1"
serde = { version = "1", features = ["derive"] }
serde_json = { version = "1", features = ["preserve_order"] }
smallbitvec = "2"
EOF
  cat > crate/.cargo/config.toml << EOF
[source.crates-io]
replace-with = "debian"

[source.debian]
directory = "/usr/share/cargo/registry"
EOF
  cat > crate/src/main.rs << EOF
mod generate;

mod tree_sitter {
    pub const LANGUAGE_VERSION: usize = 14;
    pub const PARSER_HEADER: &str = include_str!("$folder/tree-sitter-$version/lib/include/tree_sitter/parser.h");
}

fn main() -> anyhow::Result<()> {
    let folder = std::path::PathBuf::from(std::env::args().nth(1).expect("the folder of grammar.js"));
    generate::generate_parser_in_directory(&folder, None, tree_sitter::LANGUAGE_VERSION, false, None)
}
EOF
  (cd crate && RUSTFLAGS="--cap-lints allow" RUST_BINDING_VERSION=$version cargo build --quiet --release --offline)
  cp crate/target/release/generate generate
fi

# The generator also describes the grammar for bindings, which nobody here reads.
"$folder/generate" "$root/editors/tree-sitter"
cd "$root/editors/tree-sitter"
rm src/grammar.json src/node-types.json
sha256sum grammar.js | cut -d ' ' -f 1 > src/generated_from
