#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Renders the user's guide with pandoc: a site without scripts or anything from a network, and manual pages, both from
# the Markdown that is in the repository.
#
#   scripts/docs.sh [FOLDER]           FOLDER/site/*.html, FOLDER/man/baton-*.7, and the pages of the tool's commands,
#                                      FOLDER/man/baton*.1; FOLDER is target/docs by default
#   scripts/docs.sh --guide [FOLDER]   the same without those of the commands, for which the tool has to be built
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # read by report
TASK="docs"
# shellcheck source=scripts/lib/report.sh
. "$ROOT/scripts/lib/report.sh"

PARTS="$ROOT/scripts/docs"
# The pages, in the order in which each page names them. Each is called after its file; the README is the front page.
PAGES=(README.md docs/guide.md docs/guide/{tutorial,how-to,devices,networks,storage,services,watch,reference,explanation}.md
  docs/{tool,install,pmu,timeline,threats,conformance,bench}.md)

# The name of a source's page, without a suffix.
page_of() {
  if [[ "$1" == README.md ]]; then printf 'index'; else basename "$1" .md; fi
}

# The name that other pages give this one: its heading, up to a colon.
label_of() {
  sed -nE '/^# /{s/^# ([^:]*).*/\1/;s/`//g;s/&/\&amp;/g;s/</\&lt;/g;p;q}' "$ROOT/$1"
}

# Links to all pages. The one that they are on is marked, for readers who hear the page as well.
navigation() {
  local source current
  for source in "${PAGES[@]}"; do
    current=''
    [[ "$source" != "$1" ]] || current=' aria-current="page"'
    printf '<li><a href="%s.html"%s>%s</a></li>\n' "$(page_of "$source")" "$current" "$(label_of "$source")"
  done
}

# The version in a manual page's last line.
version() { sed -nE '/^version = /{s/.*"(.*)".*/\1/p;q}' "$ROOT/Cargo.toml"; }

# Every source with its page, a line each.
pages() {
  local source
  for source in "${PAGES[@]}"; do printf '%s %s\n' "$source" "$(page_of "$source")"; done
}

# Runs pandoc over one source. The filter reads from the environment which links lead to pages. A warning is a failure:
# pandoc gives one where it leaves something out.
render() {
  local source=$1
  shift
  DOCS_SOURCE="$source" DOCS_PAGES=$(pages) \
    pandoc --from gfm --lua-filter "$PARTS/filter.lua" --fail-if-warnings --standalone "$@" "$ROOT/$source"
}

site() {
  local folder=$1 source
  mkdir -p "$folder/pictures"
  cp "$PARTS/style.css" "$folder/"
  cp "$ROOT"/docs/pictures/* "$folder/pictures/"
  for source in "${PAGES[@]}"; do
    render "$source" --to html5 --template "$PARTS/page.html" --toc --toc-depth 3 \
      --variable navigation="$(navigation "$source")" --output "$folder/$(page_of "$source").html"
  done
}

# Each page but the front page, which is for people who have not got Baton yet. Their section is 7, so that
# `man 7 baton-timeline` is the chapter and `man baton-timeline` the command. Lines are not stretched, and words are not
# broken: readers search for names and copy them.
manual() {
  local folder=$1 source
  mkdir -p "$folder"
  for source in "${PAGES[@]:1}"; do
    render "$source" --to man --variable section=7 --variable footer="baton $(version)" \
      --variable header="Baton's user's guide" --variable adjusting=l --metadata hyphenate=false \
      --output "$folder/baton-$(page_of "$source").7"
  done
}

# The tool writes the pages of its commands itself, by the description of its command line.
commands() {
  (cd "$ROOT" && cargo run --locked --quiet --package baton -- man "$1" >/dev/null)
}

main() {
  local is_guide_only=0 folder
  [[ "${1:-}" != --guide ]] || { is_guide_only=1 && shift; }
  folder=${1:-$ROOT/target/docs}
  have pandoc || refuse "pandoc is missing: 'scripts/setup.sh docs' installs it on Debian and Ubuntu"
  # Nothing of an earlier run stays, so that a page that is gone is gone here, too.
  rm -rf "$folder/site" "$folder/man"
  site "$folder/site"
  manual "$folder/man"
  ((is_guide_only)) || commands "$folder/man"
  folder=${folder#"$ROOT"/}
  report "the site is $folder/site/index.html, manual pages are in $folder/man (man -l $folder/man/baton-guide.7)"
}

main "$@"
