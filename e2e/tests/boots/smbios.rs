// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux's reading of its SMBIOS tables: serial number, UUID, OEM strings.

use anyhow::{Result, ensure};
use baton::config::Guest;
use bundle::{SmbiosConfig, Uuid};
use e2e::dmesg;
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, linux};

use super::Rule;

pub const RULES: &[Rule] =
    &[("linux_shows_serial_uuid_and_oem_strings_before_and_after_an_update", linux_shows_its_tables)];

const STATED: &str = "stated";
const DERIVED: &str = "derived";
const UUID: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
const SERIAL: &str = "ds=nocloud;s=http://10.0.0.1/";
const OEM_STRINGS: [&str; 2] = ["io.systemd.credential:greeting=hello", "second"];

/// One guest has what its configuration states, the other what is derived from its name.
fn linux_shows_its_tables() -> Result<()> {
    let smbios = SmbiosConfig::new(UUID.parse().ok(), Some(SERIAL), OEM_STRINGS);
    let stated = Guest { smbios, ..linux(STATED, Kernel::Default, "dmi:100")? };
    let derived = linux(DERIVED, Kernel::Default, "dmi:100")?;
    let mut host = Recipe::new().guest(stated).guest(derived).start()?;
    tables_are_shown(&mut host)?;
    host.update_to(2)?;
    tables_are_shown(&mut host)?;
    for guest in [STATED, DERIVED] {
        let console = host.seen.console(guest);
        ensure!(!console.contains("WRONG"), "{console}");
        let complaints = dmesg::suspicious(&console);
        ensure!(complaints.is_empty(), "{guest} complains: {complaints:#?}");
    }
    host.powers_off()
}

/// Both guests read them, from now on.
fn tables_are_shown(host: &mut Host) -> Result<()> {
    let own = Uuid::derived(DERIVED).to_string();
    for (guest, serial, uuid, oem_strings) in
        [(STATED, SERIAL, UUID, &OEM_STRINGS[..]), (DERIVED, own.as_str(), own.as_str(), &[])]
    {
        let identity = "sys_vendor=Baton product_name=Virtual Machine";
        host.guest_prints(guest, &format!("{identity} product_serial={serial} product_uuid={uuid}"))?;
        host.guest_prints(guest, &format!("oem={oem_strings:?}"))?;
    }
    Ok(())
}
