# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by setup.sh: distribution packages, installed where only root can put them and unpacked under target/ where a
# mere file is wanted (a kernel to boot, a newer emulator), which needs no root and leaves the machine as it is.
# shellcheck shell=bash

# Options for every lookup; filled by use_backports.
apt_options=()

package_is_installed() {
  [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

# Installs those of the named packages that are missing.
install_packages() {
  local missing=() package removed
  for package in "$@"; do
    package_is_installed "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  can_become_root || refuse "packages are missing, and installing them takes root (there is no sudo here). As root, run" \
    "'apt-get update && apt-get install --no-install-recommends ${missing[*]}', then this again"
  report "installing with apt-get: ${missing[*]}"
  as_root apt-get update -qq || report "apt-get update failed: trying with the package lists that are here"
  removed=$(apt-get install -s --no-install-recommends "${missing[@]}" 2>/dev/null | awk '$1 == "Remv" { print $2 }') || true
  if [[ "$removed" == *rustup* ]]; then
    refuse "installing ${missing[*]} would remove rustup: run 'rustup target add x86_64-unknown-none' with a network"
  fi
  [[ -z "$removed" ]] || report "these packages make way for newer ones: ${removed//$'\n'/ }"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}" ||
    refuse "apt-get could not install ${missing[*]}: see its message above"
}

# The address of the archive that this machine takes the named suite from; nothing when it has none.
archive_of_suite() {
  # The dollar names are apt's, not the shell's.
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(CODENAME)' 'Created-By: Packages' |
    awk -v suite="$1" '($2 == suite || $3 == suite) && !found { print $1; found = 1 }'
}

# Lets the lookups see this release's backports: by this machine's own sources if they have them, else by a private
# copy of the sources under target/ with one line more. Fails when the archive has none or cannot be reached.
use_backports() {
  local suite archive keyring=/usr/share/keyrings/debian-archive-keyring.gpg private="$TARGET/setup/apt"
  suite="$(release_codename)-backports"
  [[ -z "$(archive_of_suite "$suite")" ]] || return 0
  archive=$(archive_of_suite "${suite%-backports}")
  [[ -n "$archive" ]] || return 1
  mkdir -p "$private"/{parts,lists/partial,cache/archives/partial}
  find /etc/apt/sources.list.d \( -name '*.list' -o -name '*.sources' \) -exec cp -t "$private/parts" {} +
  find /var/lib/apt/lists -maxdepth 1 -type f -name '*_dists_*' -exec cp -t "$private/lists" {} + 2>/dev/null || true
  [[ -r "$keyring" ]] && keyring=" [signed-by=$keyring]" || keyring=""
  printf 'deb%s %s %s main\n' "$keyring" "$archive" "$suite" >"$private/parts/backports.list"
  apt_options=(-o "Dir::Etc::SourceParts=$private/parts" -o "Dir::State::Lists=$private/lists"
    -o "Dir::Cache=$private/cache" -o APT::Sandbox::User=root)
  timeout 180 apt-get "${apt_options[@]}" update -qq >"$private/update.log" 2>&1 || true
  apt-cache "${apt_options[@]}" policy | grep -q "n=$suite"
}

# Downloads packages (name or name=version each) into a folder and unpacks them into another.
unpack_packages() {
  local into=$1 downloads="$TARGET/setup/downloads"
  shift
  rm -rf "$downloads" "$into.part"
  mkdir -p "$downloads" "$into.part"
  report "downloading $*"
  (cd "$downloads" && apt-get "${apt_options[@]}" -o APT::Sandbox::User=root -qq download "$@") || return 1
  local file
  for file in "$downloads"/*.deb; do
    dpkg-deb -x "$file" "$into.part" || return 1
  done
  rm -rf "$downloads" "$into"
  mv "$into.part" "$into"
}

# axe-core, the checker of web pages for people with disabilities, under target/axe-core/: of npm's package the one file
# that is loaded into a page. Only the release with the checksum below is taken.
AXE_RELEASE=4.14.1
AXE_SHA512=1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
axe_core() {
  local folder="$TARGET/axe-core" part="$TARGET/setup/axe-core" packed
  # The stamp names the release: another one in the folder is replaced.
  [[ ! -e "$folder/axe.min.js" || "$(cat "$folder/release" 2>/dev/null)" != "$AXE_RELEASE" ]] || return 0
  have npm || (install_packages npm) || return 1
  rm -rf "$part" "$folder"
  mkdir -p "$part"
  report "downloading axe-core $AXE_RELEASE"
  (cd "$part" && npm pack --silent "axe-core@$AXE_RELEASE" >/dev/null) || return 1
  packed="$part/axe-core-$AXE_RELEASE.tgz"
  sha512sum --check --status <<<"$AXE_SHA512  $packed" || return 1
  mkdir -p "$folder"
  tar -xzf "$packed" -C "$folder" --strip-components 1 package/axe.min.js package/LICENSE || return 1
  printf '%s\n' "$AXE_RELEASE" >"$folder/release"
  rm -rf "$part"
  report "axe-core is under ${folder#"$ROOT"/}"
}
