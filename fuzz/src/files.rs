// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files: bundles, manifests, kernels.

use bundle::{
    Bundle, CpuModel, Devices, FileRecord, GuestConfig, HostConfig, Manifest, OnPanic, Pmu, SmbiosConfig, VirtioDevices,
};
use vm::cpu::models::Model;
use vm::platform::loader::{self, Module};
use vm::platform::smbios::{self, System};
use vm::testing::FakeMemory;

use crate::input::Input;
use crate::{archive, kernels};

/// An archive: any bytes, or one that the writer has made, changed in places.
pub fn bundle(data: &[u8]) {
    let mut input = Input(data);
    if input.bool() {
        read(input.0);
        return;
    }
    let (kernel, cmdline) = (input.string(), text(&mut input));
    let guest = GuestConfig {
        name: "g".into(),
        kernel: "k".into(),
        initrd: input.bool().then(|| "i".into()),
        modules: vec!["i".into(); usize::from(input.u8() & 3)],
        cmdline,
        vcpus: 1,
        memory_bytes: 1 << 20,
        weight: input.u8().into(),
        on_panic: OnPanic::default(),
        hung_s: input.u8().into(),
        devices: Devices::default(),
        pmu: Pmu::Off,
        pmu_events: None,
        autostart: true,
        functions: Vec::new(),
        virtio: VirtioDevices { rng: kernel.len() & 1 != 0, console: kernel.len() & 2 != 0 },
        nics: Vec::new(),
        vsock: None,
        cpu: input.choose(&[CpuModel::Host, CpuModel::V2, CpuModel::EpycMilan]),
        smbios: smbios(&mut input),
        disks: Vec::new(),
        is_paravirtual: input.u8() & 1 != 0,
        assured_bytes: input.bool().then_some(1 << 20),
        cap_percent: input.u8().into(),
    };
    let built = bundle::write::build(HostConfig::default(), vec![guest], &[("k", kernel), ("i", b"initrd")]);
    let Ok(mut built) = built else { return };
    read(&built);
    while !input.is_empty() {
        let at = usize::from(input.u16()) % built.len();
        built[at] = input.u8();
    }
    read(&built);
}

/// A manifest with the right magic, version and checksum.
pub fn manifest(data: &[u8]) {
    for version in [bundle::OLDEST_MANIFEST_VERSION, bundle::MANIFEST_VERSION] {
        let manifest = archive::manifest(version, data);
        read(&archive::with_manifest(&manifest));
        add(&manifest);
    }
}

/// A guest is added to a host that has these networks, and is refused or leaves a manifest that can be read.
fn add(content: &[u8]) {
    let Ok(addition) = Manifest::addition_from_content(content) else { return };
    let file = |name: &str| FileRecord { name: name.to_owned(), bytes: 6, crc32: 0 };
    let networks = addition.host.networks.iter().skip(1).cloned().collect();
    let host = HostConfig { networks, ..HostConfig::default() };
    let mut manifest = Manifest { host, guests: Vec::new(), files: vec![file("k"), file("i")] };
    let before = manifest.clone();
    match manifest.add(addition) {
        Ok(guest) => {
            assert_eq!(manifest.guests, [guest]);
            assert_eq!(Manifest::from_content(&manifest.to_content()), Ok(manifest));
        }
        Err(_) => assert_eq!(manifest, before, "a guest that is refused has changed something"),
    }
}

fn smbios(input: &mut Input<'_>) -> SmbiosConfig {
    let (has_serial, serial) = (input.bool(), text(input));
    let oem_strings: Vec<String> = (0..input.u8() & 3).map(|_| text(input)).collect();
    SmbiosConfig::new(None, has_serial.then_some(serial.as_str()), oem_strings.iter().map(String::as_str))
}

fn text(input: &mut Input<'_>) -> String {
    String::from_utf8_lossy(input.string()).into_owned()
}

fn read(bytes: &[u8]) {
    let heads = [0, 5, 110, 119, bytes.len() / 2].map(|end| Bundle::check_head(&bytes[..end.min(bytes.len())]));
    let Ok(bundle) = Bundle::parse(bytes).map_err(|error| error.to_string()) else { return };
    assert!(heads.iter().all(Result::is_ok), "a good bundle's first bytes are refused");
    for file in &bundle.manifest().files {
        let found = bundle.file(&file.name);
        if let Ok(verified) = bundle.verify(&file.name) {
            assert_eq!(found, Ok(verified));
            assert_eq!((verified.len() as u64, bundle::crc32(verified)), (file.bytes, file.crc32));
        }
    }
    for guest in &bundle.manifest().guests {
        let _ = bundle.guest_files(guest).map_err(|error| error.to_string());
        assert!(guest.cpu.model().is_none_or(|name| Model::named(name).is_some()), "{:?} is no model", guest.cpu);
        let (uuid, stated) = (guest.smbios.uuid_of(&guest.name), &guest.smbios);
        let (text, oem_strings) = (uuid.to_string(), stated.oem_strings().collect::<Vec<_>>());
        let serial = stated.serial().unwrap_or(&text);
        let system = System { uuid: uuid.bytes(), serial, oem_strings: &oem_strings };
        assert_eq!(smbios::build(&system).err(), None, "what a bundle states of {} has no tables", guest.name);
    }
}

/// A kernel: any bytes, or a kernel with some of its fields changed; a command line and modules.
pub fn loaders(data: &[u8]) {
    let mut input = Input(data);
    let memory = FakeMemory::new(if input.bool() { 3 << 20 } else { usize::from(input.u16()) << 8 });
    let template = kernels::template(input.u8());
    let (command_line, first, second) = (input.string(), input.string(), input.string());
    let modules = [first, second].map(|bytes| Module { bytes, command_line: first });
    let modules = &modules[..usize::from(input.u8() % 3)];
    let image = match template {
        Some(image) => kernels::changed(image, &mut input),
        None => input.0.to_vec(),
    };
    match loader::load(&memory, &image, command_line, modules) {
        Ok(entry) => assert_ne!(entry.cr0 & 1, 0, "every kernel starts in protected mode"),
        Err(error) => drop(error.to_string()),
    }
}
