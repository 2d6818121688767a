// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys in files: a secret one that only its owner can read, and the public one beside it, each a line of text.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use seal::{KeyError, PublicKey, SecretKey};

/// Only the owner reads and writes.
const SECRET_MODE: u32 = 0o600;
/// The bits of a mode that permit access to others.
const OTHERS: u32 = 0o077;

/// Makes a key: the secret one in `path`, which must not be there yet, the public one beside it, with `.pub` behind its
/// name.
pub fn generate(path: &Path) -> Result<(PublicKey, PathBuf)> {
    let mut seed = [0; 32];
    fs::File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut seed)).context("no random numbers")?;
    let key = SecretKey::from_seed(seed);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(SECRET_MODE).open(path).with_context(|| {
        format!("{} cannot be made; a key that is there already is not written over", path.display())
    })?;
    writeln!(file, "{}", key.text())?;
    let beside = public_path(path);
    fs::write(&beside, format!("{}\n", key.public()))
        .with_context(|| format!("{} cannot be written", beside.display()))?;
    Ok((key.public(), beside))
}

/// Returns the secret key in a file.
pub fn secret(path: &Path) -> Result<SecretKey> {
    let explain = || format!("{} cannot be read; `baton key new` makes a key", path.display());
    check_private(path, "; `baton key new` makes a key")?;
    let text = fs::read_to_string(path).with_context(explain)?;
    text.parse().map_err(|error: KeyError| anyhow!("{}: {error}", path.display()))
}

/// Refuses a file with a secret that others can read. The hint is for a file that is not there.
pub fn check_private(path: &Path, hint: &str) -> Result<()> {
    let metadata = fs::metadata(path).with_context(|| format!("{} cannot be read{hint}", path.display()))?;
    if metadata.mode() & OTHERS != 0 {
        bail!(
            "{} can be read by others; take that away with chmod 600, if the key can still be trusted",
            path.display()
        );
    }
    Ok(())
}

/// Returns the public key that `word` is, or that stands in the file of that name.
pub fn public(word: &str, folder: &Path) -> Result<PublicKey, String> {
    if word.starts_with("ed25519") {
        return word.parse().map_err(|error: KeyError| error.to_string());
    }
    let path = folder.join(word);
    let text = fs::read_to_string(&path).map_err(|error| {
        format!("{} cannot be read ({error}); write a key (ed25519:…) or a file with one", path.display())
    })?;
    text.trim_end().parse().map_err(|error: KeyError| format!("{}: {error}", path.display()))
}

fn public_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".pub");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_kept_from_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("release.key");
        let (made, beside) = generate(&path).expect("made");
        assert_eq!(secret(&path).expect("read").public(), made);
        assert_eq!(public("release.key.pub", folder.path()), Ok(made));
        assert_eq!(public(&made.to_string(), Path::new("")), Ok(made));
        assert!(beside.ends_with("release.key.pub"));
        assert!(generate(&path).expect_err("there").to_string().contains("not written over"));
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("changed");
        assert!(secret(&path).map(drop).expect_err("open to others").to_string().contains("chmod 600"));
    }

    #[test]
    fn a_file_that_is_no_key_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("wrong.pub"), "ssh-ed25519 AAAA").expect("written");
        let error = public("wrong.pub", folder.path()).expect_err("no key");
        assert!(error.contains("wrong.pub: it is no public key"), "{error}");
        assert!(public("nowhere.pub", folder.path()).expect_err("none").contains("nowhere.pub cannot be read"));
        let secret = SecretKey::from_seed([1; 32]).text().to_string();
        assert!(public(&secret, folder.path()).expect_err("secret").contains("it is a secret key"));
    }
}
