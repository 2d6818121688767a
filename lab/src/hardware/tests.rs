// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of a lab machine's IOMMU and devices.

use std::fs;

use baton::size::Size;

use super::*;

fn words(hardware: &Hardware) -> String {
    let words = hardware.arguments();
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn placed(devices: &[Device]) -> String {
    words(&Hardware::place(Iommu::None, devices, Path::new("qemu"), Path::new("/nowhere")).expect("possible"))
}

fn network(model: Model, backend: Backend) -> Device {
    Device::Network(Network { model, backend, mac: "52:54:00:00:00:0a".parse().ok() })
}

#[test]
fn the_iommu_comes_before_the_devices_that_it_translates() {
    let place = |iommu| Hardware::place(iommu, &[Device::Edu], Path::new("qemu"), Path::new("/nowhere"));
    let edu = "-device pcie-root-port,id=port1,bus=pcie.0,addr=0x2,chassis=1,slot=1 -device \
               edu,bus=port1,dma_mask=0xffffffffffffffff";
    assert_eq!(words(&place(Iommu::None).expect("possible")), edu);
    let amd = place(Iommu::Amd).expect("possible");
    let on_bus_0 = "-device edu,bus=pcie.0,addr=0x2,dma_mask=0xffffffffffffffff";
    assert_eq!(words(&amd), format!("-device amd-iommu,intremap=on,pt=off {on_bus_0}"));
    let passing = amd.without_remapping();
    assert_eq!(words(&passing), format!("-device amd-iommu,intremap=off,pt=off {on_bus_0}"));
    let intel = place(Iommu::Intel).expect("possible");
    assert_eq!(words(&intel), format!("-device intel-iommu,intremap=on,aw-bits=48 {edu}"));
}

#[test]
fn a_disk_is_a_namespace_of_its_own_subsystem() {
    let storage = Storage::File("/a,b.img".into());
    let nvme = Device::Nvme(Nvme { storage, serial: "baton-2".into(), virtual_functions: 4 });
    let arguments = placed(&[Device::Edu, nvme]);
    let expected = "-device pcie-root-port,id=port2,bus=pcie.0,addr=0x3,chassis=2,slot=2 -blockdev \
                    node-name=disk2,driver=raw,file.driver=file,file.filename=/a,,b.img -device \
                    nvme-subsys,id=subsystem2,nqn=baton-2 -device \
                    nvme,id=nvme2,bus=port2,serial=baton-2,subsys=subsystem2,sriov_max_vfs=4,sriov_vq_flexible=8,\
                    sriov_vi_flexible=4,max_ioqpairs=16,msix_qsize=13 -device nvme-ns,bus=nvme2,drive=disk2";
    assert!(arguments.ends_with(expected), "{arguments}");
}

#[test]
fn a_temporary_disk_is_a_sparse_file_in_the_hosts_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let nvme = |size| Nvme { storage: Storage::Temporary(size), serial: "x".into(), virtual_functions: 0 };
    let devices = [Device::Nvme(nvme(Size::mebibytes(64)))];
    let hardware = Hardware::place(Iommu::None, &devices, Path::new("qemu"), folder.path()).expect("possible");
    let path = folder.path().join("disk-1.img");
    assert_eq!(fs::metadata(&path).expect("it is there").len(), 64 << 20);
    assert!(words(&hardware).contains(&format!("file.filename={}", path.display())));
    assert!(!words(&hardware).contains("sriov"));
    let error =
        Hardware::place(Iommu::None, &devices, Path::new("qemu"), Path::new("/nowhere")).expect_err("no folder");
    assert_eq!(error.to_string(), "[[host.device]] 1: the temporary disk /nowhere/disk-1.img (64 MiB) cannot be made");
}

#[test]
fn a_card_is_at_the_end_of_a_cable() {
    let unix = |path: &str| Address::Unix(path.into());
    let cables = [
        (
            Backend::User { forward: vec!["tcp:127.0.0.1:2222-:22".into()] },
            "user,id=net1,hostfwd=tcp:127.0.0.1:2222-:22",
        ),
        (
            Backend::Listen(Address::Inet("::1".into(), 80)),
            "stream,id=net1,server=on,addr.type=inet,addr.host=::1,addr.port=80",
        ),
        (Backend::Connect(unix("/a,b")), "stream,id=net1,server=off,addr.type=unix,addr.path=/a,,b"),
        (
            Backend::Datagrams { local: unix("/a"), remote: unix("/b") },
            "dgram,id=net1,local.type=unix,local.path=/a,remote.type=unix,remote.path=/b",
        ),
        (Backend::Tap("tap0".into()), "tap,id=net1,ifname=tap0,script=no,downscript=no"),
    ];
    for (backend, expected) in cables {
        let arguments = placed(&[network(Model::E1000e, backend)]);
        let card = "-device e1000e,netdev=net1,bus=port1,romfile=,mac=52:54:00:00:00:0a";
        assert!(arguments.ends_with(&format!("-netdev {expected} {card}")), "{arguments}");
    }
    let arguments = placed(&[network(Model::VirtioNet, Backend::Tap("a".into()))]);
    assert!(arguments.contains("-device virtio-net-pci,disable-legacy=on,iommu_platform=on,netdev=net1,"));
}
