// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host whose disk and network card one guest has, which runs stock Linux software: it routes and gives addresses
//! (udhcpd), serves disks (nbdkit), and runs the service that operates the host. Three guests start from disks that it
//! serves, and reach the outside through it.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use baton::client::Client;
use baton::config::{Backend, Boot, Device, Guest, Iommu, Model, Network, Nvme, Storage};
use baton::connection::{Address, Identity};
use bundle::{AssignedConfig, ControlRights, ControlRole, DiskConfig, GuestControl, NetworkConfig, VsockConfig};
use e2e::guest_tool;
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::{Kernel, built};
use e2e::recipe::{Recipe, folder, program};
use e2e::transcript::Transcript;
use lab::echo::Echo;
use lab::inside;
use wire::{ReplyBody, RequestBody, UpdateBy};

use super::Rule;
use super::disk_boot::{Disk, runs};
use super::networks::nic;
use super::serve::write_certificates;

pub const LONG_RULES: &[Rule] = &[(
    "three_guests_live_on_a_service_guest_s_disk_and_network_and_the_host_is_operated_through_it",
    three_guests_live_on_it,
)];

const SERVICES: &str = "services";
const SERVICES_CID: u32 = 5;
const DRIVERS: &[&str] =
    &["virtio_pci", "virtio_net", "vmw_vsock_virtio_transport", "nvme", "ext4", "virtio_blk", "af_packet"];
/// In the guest.
const SERVICE_PORT: u16 = 9464;
const WEBS: [&str; 3] = ["web1", "web2", "web3"];
/// Updates, and the least time from one to the next.
const UPDATES: u64 = 4;
const INTERVAL: Duration = Duration::from_secs(10);
/// Disks are back so soon after the service guest has failed.
const BACK_WITHIN: Duration = Duration::from_secs(60);
/// Four Linuxes boot, three of them twice, on a machine that does other work as well.
const LIMIT: Duration = Duration::from_secs(600);

/// The card is in the outside's network, 10.0.2.0/24, of which the upper half is routed to the guests.
const SERVE: &str = r#"
ip link set lo up
for path in /sys/class/net/e*; do
  case $(cat $path/address) in 52:54:00:00:00:01) lan=${path##*/} ;; *) card=${path##*/} ;; esac
done
ip addr add 10.0.2.15/24 dev $card; ip link set $card up; ip route add default via 10.0.2.2
ip addr add 10.0.2.129/25 dev $lan; ip link set $lan up
echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv4/conf/$card/proxy_arp
mkdir -p /disks; touch /tmp/leases
cat >/tmp/udhcpd.conf <<END
interface $lan
start 10.0.2.130
end 10.0.2.140
option subnet 255.255.255.128
option router 10.0.2.129
lease_file /tmp/leases
END
udhcpd /tmp/udhcpd.conf
until [ -b /dev/nvme0n1 ]; do sleep 1; done
mount -t ext4 /dev/nvme0n1 /disks
for number in 0 1 2; do
  nbdkit --vsock --port $((10809 + number)) --filter=noparallel file /disks/$number.img serialize=connections
done
baton_serve --host rack1=vsock:2 --listen tcp:0.0.0.0:9464 --access /access.toml --audit /tmp/audit &
echo "services: ready"
exec sh
"#;

/// A block is written, synchronised, and read from the disk again; a line goes to the outside and back.
const LIVE: &str = r#"
ip link set lo up; ip link set eth0 up
cat >/dhcp <<'END'
#!/bin/sh
[ "$1" = bound ] || exit 0
ip addr add "$ip/$mask" dev "$interface"; ip route add default via "$router"
echo "web: address $ip"
END
chmod 755 /dhcp
udhcpc -i eth0 -q -s /dhcp
mkdir -p /mnt; mount -t ext4 /dev/vda1 /mnt
n=0
while :; do
  n=$((n + 1))
  dd if=/dev/urandom of=/tmp/block bs=64k count=4 2>/dev/null
  cp /tmp/block /mnt/block && sync && echo 3 >/proc/sys/vm/drop_caches
  if cmp /tmp/block /mnt/block; then echo "web: disk $n"; else echo "web: WRONG disk $n"; fi
  answer=$(echo "hello $n" | nc -w 10 10.0.2.2 ECHO)
  if [ "$answer" = "hello $n" ]; then echo "web: outside $n"; else echo "web: silence $n"; fi
  sleep 1
done
"#;

/// A guest with the files of the service in `folder`, which controls the host.
pub(super) fn with_service(folder: &Path, name: &str, drivers: &[&str], script: &str) -> Result<Guest> {
    let names = ["access.toml", "ca.pem", "localhost.pem", "localhost.key"];
    let paths = names.map(|name| folder.join(name));
    let files: Vec<(&str, &Path)> = names.into_iter().zip(paths.iter().map(PathBuf::as_path)).collect();
    let guest = guest_tool::guest(folder, name, drivers, script, &files)?;
    let control = Some(GuestControl { role: ControlRole::Update, rights: ControlRights::default() });
    Ok(Guest { vsock: Some(VsockConfig { cid: SERVICES_CID, peers: Vec::new(), control }), ..guest })
}

/// The guest that has disk and card.
fn services(folder: &Path) -> Result<Guest> {
    let mut guest = with_service(folder, SERVICES, DRIVERS, SERVE)?;
    guest.modules.insert(0, built("guests/nbdkit.cpio")?);
    guest.nics = vec![nic(1)];
    let function = |selector: &str| AssignedConfig { selector: selector.to_owned(), ..AssignedConfig::default() };
    guest.functions = vec![function("1b36:0010"), function("1af4:1041")];
    Ok(guest)
}

/// A guest that starts what is installed on its disk, which the other one serves.
fn web(number: usize) -> Result<Guest> {
    let mut guest = program(WEBS[number], Kernel::Default.file()?);
    guest.memory = baton::size::Size::mebibytes(384);
    guest.cmdline = "console=ttyS0 loglevel=5".to_owned();
    guest.boot = Boot::Disk { drivers: Kernel::Default.drivers()?.folder().to_owned(), serial: None };
    guest.nics = vec![nic(2 + number as u8)];
    let port = 10_809 + number as u32;
    guest.disks = vec![DiskConfig { cid: SERVICES_CID, port, timeout_s: 300, ..DiskConfig::default() }];
    Ok(guest)
}

/// The machine's disk: a file system with an image for each of the three guests.
fn disk(folder: &Path, echo: u16) -> Result<Device> {
    let tree = folder.join("disks");
    fs::create_dir(&tree)?;
    let script = inside::script(&LIVE.replace("ECHO", &echo.to_string()), &[])?;
    let drivers = Kernel::V6_1.drivers()?.archive(DRIVERS)?;
    let initrd = [fs::read(built("guests/initramfs.cpio")?)?, drivers, script].concat();
    for (number, name) in WEBS.into_iter().enumerate() {
        let of_disk = folder.join(name);
        fs::create_dir(&of_disk)?;
        let disk = Disk::with_initrd(&of_disk, &[Kernel::V6_1], &initrd)?;
        fs::rename(disk.file(), tree.join(format!("{number}.img")))?;
    }
    let file = folder.join("nvme.img");
    let mut made = Command::new("mke2fs");
    made.args(["-q", "-F", "-t", "ext4", "-d"]).arg(&tree).arg(&file).arg("400m");
    runs(made)?;
    let storage = Storage::File(file);
    Ok(Device::Nvme(Nvme { storage, serial: "disks".to_owned(), virtual_functions: 0 }))
}

/// Behind VT-d each device of the lab has a root port of its own, which resets it.
fn start(folder: &Path, service: u16, echo: u16) -> Result<Host> {
    let forward = vec![format!("tcp:127.0.0.1:{service}-:{SERVICE_PORT}")];
    let backend = Backend::User { forward };
    let card = Device::Network(Network { model: Model::VirtioNet, backend, mac: None });
    let mut recipe = Recipe::new().cpus(2).memory_mib(2304).with_devices(Iommu::Intel, vec![disk(folder, echo)?, card]);
    recipe.networks = vec![NetworkConfig { name: "lan".to_owned(), mtu: 1500 }];
    recipe = recipe.guest(services(folder)?);
    for number in 0..WEBS.len() {
        recipe = recipe.guest(web(number)?);
    }
    let mut host = recipe.start()?;
    host.limit(LIMIT);
    Ok(host)
}

/// The host, as it is reached from the outside: through the service in the guest.
fn reach(service: u16, identity: &Identity) -> Result<Client> {
    let (host, name, identity) = ("localhost".to_owned(), Some("rack1".to_owned()), identity.clone());
    let address = Address::Https { host, port: service, name, identity };
    let end = Instant::now() + BOOT_LIMIT;
    loop {
        match Client::reach(&address, None).and_then(|mut client| client.info().map(|_| client)) {
            Ok(client) => return Ok(client),
            Err(error) if Instant::now() >= end => return Err(error).context("the service is not reached"),
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// Each of the three guests writes and reads, and has an answer from the outside, from now on.
fn all_live(host: &mut Host) -> Result<()> {
    for name in WEBS {
        for line in ["web: disk ", "web: outside "] {
            let last = |seen: &Transcript| newest(&seen.console(name), line);
            // The next one may have begun before.
            let wanted = last(&host.seen) + 2;
            host.wait(&format!("{line:?} {wanted} of {name}"), |seen| last(seen) >= wanted)?;
        }
    }
    Ok(())
}

/// The number of the last line that begins so; 0 if there is none.
fn newest(console: &str, beginning: &str) -> u64 {
    let mut numbers = console.lines().filter_map(|line| line.strip_prefix(beginning)?.trim_end().parse().ok());
    numbers.next_back().unwrap_or(0)
}

fn three_guests_live_on_it() -> Result<()> {
    let (folder, (_echo, echo)) = (folder()?, Echo::listen()?);
    let identity = write_certificates(folder.path())?;
    let service = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut host = start(folder.path(), service, echo)?;
    host.guest_prints(SERVICES, "services: ready")?;
    all_live(&mut host)?;
    is_updated_from_the_outside(&mut host, service, &identity)?;
    fails_and_is_back(&mut host)?;
    // The service is a new one, and the host the same.
    let generation = reach(service, &identity)?.info()?.generation;
    ensure!(generation == 1 + UPDATES, "generation {generation}");
    host.powers_off()
}

/// The outside asks for updates; no guest notices.
fn is_updated_from_the_outside(host: &mut Host, service: u16, identity: &Identity) -> Result<()> {
    let mut client = reach(service, identity)?;
    for generation in 2..2 + UPDATES {
        let next = Instant::now() + INTERVAL;
        let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        match client.request_within(BOOT_LIMIT, update)? {
            ReplyBody::Updated(report) => ensure!(report.generation == generation, "{report:?}"),
            other => bail!("another answer: {other:?}"),
        }
        all_live(host)?;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    for name in WEBS {
        let console = host.seen.console(name);
        ensure!(!["WRONG", "silence", "I/O error"].iter().any(|word| console.contains(word)), "{name}: {console}");
    }
    Ok(())
}

/// The service guest's kernel panics, and starts again: the three only wait for their disks.
fn fails_and_is_back(host: &mut Host) -> Result<()> {
    host.types(SERVICES, "echo c >/proc/sysrq-trigger\n")?;
    let failed = Instant::now();
    host.guest_prints(SERVICES, "services: ready")?;
    all_live(host)?;
    let took = failed.elapsed();
    println!("disks and network were back after {:.1} s", took.as_secs_f64());
    ensure!(took <= BACK_WITHIN, "disks and network were back after {took:?}");
    for name in WEBS {
        let console = host.seen.console(name);
        ensure!(!["WRONG", "I/O error"].iter().any(|word| console.contains(word)), "{name}: {console}");
    }
    Ok(())
}
