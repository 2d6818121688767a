// SPDX-License-Identifier: MIT OR Apache-2.0
//! From `host.toml` to a bundle.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use ::bundle::{Bundle, Devices, GuestConfig, HostConfig, Manifest, NetworkConfig, write};
use anyhow::{Context as _, Result, anyhow};
use seal::{PublicKey, Seal, SealedKind, SecretKey, Trust};
use wire::HostInfo;
use zerocopy::IntoBytes as _;

use crate::config::{Boot, Config, Guest, Image};
use crate::{disk_boot, image, paths};

/// A file: its name in the bundle, or on the host, and its content.
pub type NamedFile = (String, Vec<u8>);

/// Files on their way into a bundle. A file that several guests use is taken once.
#[derive(Default)]
struct Files {
    taken: Vec<NamedFile>,
    /// By canonical path: the name in the bundle.
    names: HashMap<PathBuf, String>,
}

/// Reads every file that `config` names and builds the bundle. The image for restarts is `usual_image` where `config`
/// names no other.
pub fn build(config: &Config, usual_image: Option<&Path>) -> Result<Vec<u8>> {
    let mut files = Files::default();
    let guests = config.guests.iter().map(|guest| compile(guest, &mut files)).collect::<Result<_>>()?;
    let image = match &config.host.image {
        Image::Usual => usual_image,
        Image::File(path) => Some(path.as_path()),
        Image::None => None,
    };
    let image = image.map(|path| files.take_image(path, &config.trusted_keys)).transpose()?;
    let trusted_keys = config.trusted_keys.iter().map(|key| key.bytes()).collect();
    let allow_downgrade = config.allow_downgrade;
    let (when_done, networks) = (config.host.when_done, config.networks.clone());
    let (control_keys, is_serial_open) = (config.control.keys.clone(), config.control.is_serial_open);
    let host = HostConfig { when_done, image, trusted_keys, allow_downgrade, networks, control_keys, is_serial_open };
    let files: Vec<_> = files.taken.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
    write::build(host, guests, &files).with_context(|| format!("{} cannot be bundled", config.path.display()))
}

/// Describes one guest for a host that runs, whose network devices are on these networks: a manifest, and its files by
/// the names that the host gives them.
///
/// # Errors
/// A file cannot be read, or the guest cannot be.
pub fn addition(guest: &Guest, networks: &[NetworkConfig]) -> Result<(Manifest, Vec<NamedFile>)> {
    let mut files = Files::default();
    let mut config = compile(guest, &mut files)?;
    let named = |content: &[u8]| image::digest(content).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let names: HashMap<String, String> =
        files.taken.iter().map(|(name, content)| (name.clone(), named(content))).collect();
    let all = [&mut config.kernel].into_iter().chain(&mut config.initrd).chain(&mut config.modules);
    all.for_each(|name| *name = names.get(name).cloned().unwrap_or_default());
    let files = files.taken.into_iter().map(|(name, content)| (names[&name].clone(), content)).collect();
    let host = HostConfig { networks: networks.to_vec(), ..HostConfig::EMPTY };
    let manifest = Manifest { host, guests: vec![config], ..Manifest::default() };
    Ok((manifest, files))
}

/// Returns the bundle with a seal behind it that this key has signed.
pub fn signed(mut bundle: Vec<u8>, key: &SecretKey) -> Vec<u8> {
    let seal = Seal::of_kind(SealedKind::Bundle, &bundle, Some(key));
    bundle.extend(seal.as_bytes());
    bundle
}

/// Checks whether a host would accept the bundle: its seal, and the image in it. Sends nothing.
pub fn check_for(file: &[u8], host: &HostInfo, is_downgrade: bool) -> Result<()> {
    let keys = image::keys_of(host)?;
    let trust = if keys.is_empty() { Trust::Any } else { Trust::Keys(&keys) };
    seal::judge_bundle(file, image::digest, trust).map_err(|error| anyhow!("{error}; {}", error.hint_of_bundle()))?;
    let bundle = Bundle::parse(file)?;
    let name = bundle.manifest().host.image.as_deref();
    let name = name.context("it holds no image to restart with; build it with one ([host] image in host.toml)")?;
    image::check_for(bundle.verify(name)?, host, is_downgrade).with_context(|| format!("its image {name}"))
}

fn compile(guest: &Guest, files: &mut Files) -> Result<GuestConfig> {
    Ok(GuestConfig {
        name: guest.name.clone(),
        kernel: files.take(&guest.kernel)?,
        initrd: match &guest.boot {
            Boot::Kernel => guest.initrd.as_deref().map(|path| files.take(path)).transpose()?,
            Boot::Disk { drivers, .. } => Some(files.take_loader(drivers)?),
        },
        modules: guest.modules.iter().map(|path| files.take(path)).collect::<Result<_>>()?,
        cmdline: disk_boot::cmdline(guest),
        vcpus: guest.vcpus,
        memory_bytes: guest.memory_max.unwrap_or(guest.memory).bytes,
        assured_bytes: guest.memory_max.map(|_| guest.memory.bytes),
        devices: Devices { debug_exit: guest.debug_exit },
        weight: guest.weight,
        cap_percent: guest.cap_percent,
        on_panic: guest.on_panic,
        hung_s: guest.hung_s,
        pmu: guest.pmu,
        pmu_events: guest.pmu_events.clone(),
        autostart: guest.autostart,
        functions: guest.functions.clone(),
        virtio: guest.virtio,
        nics: guest.nics.clone(),
        vsock: guest.vsock.clone(),
        cpu: guest.cpu,
        smbios: guest.smbios.clone(),
        disks: guest.disks.clone(),
        is_paravirtual: guest.is_paravirtual,
    })
}

impl Files {
    /// Reads the file at `path` unless it has been read; returns its name in the bundle.
    fn take(&mut self, path: &Path) -> Result<String> {
        let explain = || format!("{} cannot be read", path.display());
        let canonical = fs::canonicalize(path).with_context(explain)?;
        if let Some(name) = self.names.get(&canonical) {
            return Ok(name.clone());
        }
        let content = fs::read(&canonical).with_context(explain)?;
        let name = self.free_name(path);
        self.names.insert(canonical, name.clone());
        self.taken.push((name.clone(), content));
        Ok(name)
    }

    /// Makes the initial RAM disk that starts the kernel of a disk, unless it has been made with the same drivers;
    /// returns its name in the bundle.
    fn take_loader(&mut self, drivers: &Path) -> Result<String> {
        let canonical = fs::canonicalize(drivers).with_context(|| format!("{} cannot be read", drivers.display()))?;
        if let Some(name) = self.names.get(&canonical) {
            return Ok(name.clone());
        }
        let content = disk_boot::initrd(&paths::loader()?, &canonical)?;
        let name = self.free_name(Path::new(disk_boot::NAME));
        self.names.insert(canonical, name.clone());
        self.taken.push((name.clone(), content));
        Ok(name)
    }

    /// Reads the image at `path`, seals it unless it is sealed; returns its name in the bundle. One that a host with
    /// these keys would refuse is refused here.
    fn take_image(&mut self, path: &Path, keys: &[PublicKey]) -> Result<String> {
        let content = image::sealed(image::read(path)?);
        if !keys.is_empty() {
            image::verify(&content, keys).map_err(|error| {
                let hint = "sign it with `baton image sign`, or leave it out with [host] image = \"none\"";
                anyhow!("the host would refuse the image {}: {error}; {hint}", path.display())
            })?;
        }
        let name = self.free_name(path);
        self.taken.push((name.clone(), content));
        Ok(name)
    }

    /// Returns the file's own name or, if another file has it, the name with a number before it.
    fn free_name(&self, path: &Path) -> String {
        let own = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_free =
            |name: &String| name != ::bundle::MANIFEST_NAME && self.taken.iter().all(|(taken, _)| taken != name);
        let numbered = (2..).map(|number| format!("{number}/{own}"));
        std::iter::once(own.clone()).chain(numbered).find(is_free).unwrap_or(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{host_info, test_image};

    #[test]
    fn files_of_one_name_are_kept_apart_and_shared_files_taken_once() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("old")).expect("made");
        fs::write(folder.path().join("vmlinuz"), b"new").expect("written");
        fs::write(folder.path().join("old/vmlinuz"), b"old").expect("written");
        let guest = |name: &str, kernel: &str| format!("[[guest]]\nname='{name}'\nkernel='{kernel}'\nmemory='2MiB'\n");
        let text = guest("a", "vmlinuz") + &guest("b", "old/vmlinuz") + &guest("c", "old/../vmlinuz");
        let config = Config::parse(&folder.path().join("host.toml"), &text).expect("good");
        let bytes = build(&config, None).expect("good");
        let bundle = Bundle::parse(&bytes).expect("good");
        assert_eq!(bundle.manifest().files.len(), 2);
        let kernels = bundle.manifest().guests.iter().map(|guest| bundle.verify(&guest.kernel).expect("whole"));
        assert_eq!(kernels.collect::<Vec<_>>(), [&b"new"[..], b"old", b"new"]);
    }

    #[test]
    fn the_image_for_restarts_is_the_usual_one_another_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let usual = folder.path().join("baton.elf");
        for name in ["vmlinuz", "baton.elf", "next.elf"] {
            fs::write(folder.path().join(name), name).expect("written");
        }
        let image = |key: &str| {
            let text = format!("[host]\n{key}\n[[guest]]\nname='a'\nkernel='vmlinuz'\nmemory='2MiB'\n");
            let config = Config::parse(&folder.path().join("host.toml"), &text).expect("good");
            let bytes = build(&config, Some(&usual)).expect("good");
            let bundle = Bundle::parse(&bytes).expect("good");
            bundle
                .manifest()
                .host
                .image
                .as_deref()
                .map(|name| Seal::split(bundle.verify(name).expect("whole")).expect("sealed").0.to_vec())
        };
        assert_eq!(image(""), Some(b"baton.elf".to_vec()));
        assert_eq!(image("image = 'next.elf'"), Some(b"next.elf".to_vec()));
        assert_eq!(image("image = 'none'"), None);
    }

    /// Returns the bundle of a host.toml with these lines, and its image of this security version, which key 1 has
    /// signed.
    fn bundle_with(lines: &str, security_version: u32) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let image = image::seal_new(&test_image(security_version, 3, 4), Some(&key(1))).expect("an image");
        fs::write(folder.path().join("next.elf"), image).expect("written");
        fs::write(folder.path().join("vmlinuz"), b"kernel").expect("written");
        let text = format!("{lines}\n[[guest]]\nname='a'\nkernel='vmlinuz'\nmemory='2MiB'\n");
        build(&Config::parse(&folder.path().join("host.toml"), &text).expect("good"), None).expect("good")
    }

    fn key(number: u8) -> SecretKey {
        SecretKey::from_seed([number; 32])
    }

    #[test]
    fn a_bundle_that_the_host_would_refuse_is_not_sent() {
        let host = HostInfo { trusted_keys: vec![key(1).public().to_string()], ..host_info() };
        let refusal =
            |file: &[u8]| check_for(file, &host, false).err().map(|error| format!("{error:#}")).unwrap_or_default();
        let good = bundle_with("[host]\nimage = 'next.elf'", 5);
        assert_eq!(refusal(&signed(good.clone(), &key(1))), "");
        assert!(refusal(&good).contains("it is not signed") && refusal(&good).contains("--sign"), "{}", refusal(&good));
        assert!(refusal(&signed(good.clone(), &key(2))).contains("which this host does not trust"));
        let mut changed = signed(good, &key(1));
        changed[200] ^= 1;
        assert!(refusal(&changed).contains("it is not what was sealed"), "{}", refusal(&changed));
        let without = refusal(&signed(bundle_with("[host]\nimage = 'none'", 5), &key(1)));
        assert!(without.contains("holds no image"), "{without}");
        let old = refusal(&signed(bundle_with("[host]\nimage = 'next.elf'", 4), &key(1)));
        assert!(old.contains("its image next.elf: it is too old: its security version is 4"), "{old}");
    }

    #[test]
    fn the_policy_on_downgrades_is_bundled() {
        for (lines, expected) in
            [("", None), ("allow_downgrade = true", Some(true)), ("allow_downgrade = false", Some(false))]
        {
            let bytes = bundle_with(&format!("[trust]\n{lines}\n[host]\nimage = 'next.elf'"), 5);
            assert_eq!(Bundle::parse(&bytes).expect("good").manifest().host.allow_downgrade, expected);
        }
    }
}
