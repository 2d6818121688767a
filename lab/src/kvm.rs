// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether a lab machine can run on KVM. Without this check the emulator ends in an assertion of its own, or
//! Baton finds no SVM.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Result, bail};

/// CPUs with AMD's SVM, as /proc/cpuinfo names their vendors.
const VENDORS: [&str; 2] = ["AuthenticAMD", "HygonGenuine"];
const OTHERWISE: &str = "or leave out --accel kvm";

/// Checks the CPU, /dev/kvm and nested virtualization; `root` is the root of the file system.
///
/// # Errors
/// The missing item, with a hint.
pub(super) fn check(root: &Path) -> Result<()> {
    check_vendor(&fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default())?;
    check_device(&root.join("dev/kvm"))?;
    let nested = fs::read_to_string(root.join("sys/module/kvm_amd/parameters/nested")).unwrap_or_default();
    match nested.trim() {
        "1" | "Y" => Ok(()),
        "" => bail!("KVM: the module kvm_amd is not loaded; load it with `modprobe kvm_amd nested=1`, {OTHERWISE}"),
        value => bail!(
            "KVM: nested virtualization is disabled (/sys/module/kvm_amd/parameters/nested is {value}); \
             run `modprobe -r kvm_amd && modprobe kvm_amd nested=1`, {OTHERWISE}"
        ),
    }
}

fn check_vendor(cpuinfo: &str) -> Result<()> {
    let vendor =
        cpuinfo.lines().find_map(|line| line.strip_prefix("vendor_id")?.split(':').nth(1)).map_or("", str::trim);
    if !VENDORS.contains(&vendor) {
        let vendor = if vendor.is_empty() { "unknown" } else { vendor };
        bail!(
            "KVM: this machine's CPU (vendor {vendor}) has no AMD SVM, which Baton needs; use an AMD machine, \
             {OTHERWISE}"
        );
    }
    Ok(())
}

fn check_device(path: &Path) -> Result<()> {
    let Err(error) = OpenOptions::new().read(true).write(true).open(path) else { return Ok(()) };
    match error.kind() {
        ErrorKind::NotFound => {
            bail!("KVM: /dev/kvm does not exist; enable SVM in the firmware and load kvm_amd, {OTHERWISE}")
        }
        ErrorKind::PermissionDenied => {
            bail!("KVM: /dev/kvm cannot be opened: permission denied; join the group kvm, {OTHERWISE}")
        }
        _ => bail!("KVM: /dev/kvm cannot be opened: {error}; correct that, {OTHERWISE}"),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A machine with this vendor's CPU, with or without /dev/kvm, and this word about nesting.
    fn machine(vendor: &str, has_device: bool, nested: Option<&str>) -> TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        put("proc/cpuinfo", &format!("processor\t: 0\nvendor_id\t: {vendor}\n"));
        if has_device {
            put("dev/kvm", "");
        }
        if let Some(nested) = nested {
            put("sys/module/kvm_amd/parameters/nested", nested);
        }
        root
    }

    #[test]
    fn a_machine_with_nested_svm_is_taken() {
        for nested in ["1\n", "Y\n"] {
            check(machine("AuthenticAMD", true, Some(nested)).path()).expect("good");
        }
    }

    #[test]
    fn what_a_machine_lacks_for_kvm_is_named() {
        let cases = [
            (machine("GenuineIntel", true, Some("1")), "vendor GenuineIntel) has no AMD SVM"),
            (machine("", true, Some("1")), "vendor unknown)"),
            (machine("AuthenticAMD", false, Some("1")), "/dev/kvm does not exist"),
            (machine("AuthenticAMD", true, None), "kvm_amd is not loaded"),
            (machine("AuthenticAMD", true, Some("0\n")), "nested virtualization is disabled"),
        ];
        for (root, expected) in cases {
            let error = check(root.path()).expect_err("it lacks something").to_string();
            assert!(error.contains(expected) && error.ends_with(OTHERWISE), "{error}");
        }
    }
}
