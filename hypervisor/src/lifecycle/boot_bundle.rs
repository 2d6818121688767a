// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bundle that the loader gives, and the guests in it.

use alloc::sync::Arc;

use bundle::Bundle;

use crate::arch::memory;
use crate::guests::guest::Guest;
use crate::guests::slots::GUESTS;
use crate::guests::{configuration, networks, sockets};
use crate::kernel::cpus;
use crate::kernel::platform::boot_info;
use crate::kernel::timeline::{self, Name};

/// Finds the bundle among the loader's modules: the first one is it. Without one, or with a broken one, the host is up
/// all the same, without guests.
pub fn find_bundle() -> Option<Bundle<'static>> {
    let _span = timeline::span(Name::Bundle, 0);
    let info = boot_info()?;
    let Some(module) = info.modules.first() else {
        log::warn!("no bundle: the loader gave no module, so there are no guests (in QEMU: -initrd FILE)");
        return None;
    };
    match memory::module_bytes(module.range).map(Bundle::parse) {
        Some(Ok(bundle)) => return Some(bundle),
        Some(Err(error)) => log::error!("bundle refused: {error}"),
        None => log::error!("bundle refused: its memory at {} cannot be read", module.range),
    }
    None
}

/// Makes the guests of the bundle; `place` places their vCPUs where that is not left to this image.
pub fn open_bundle(bundle: Option<Bundle<'static>>, place: impl Fn(&mut Guest)) {
    let Some(bundle) = bundle else { return };
    let manifest = bundle.manifest();
    let _span = timeline::span(Name::Guests, manifest.guests.len() as u32);
    networks::create(&manifest.host);
    sockets::create(&manifest.guests);
    let cpus = cpus::threads::for_guests();
    let mut next = 0;
    for (number, config) in (0..).zip(&manifest.guests) {
        if let Err(reason) = networks::enter(number, config) {
            log::error!("{reason}; make the bundle again with `baton bundle`");
        }
        sockets::enter(number, config);
        let mut guest = Guest::new(number, config.clone(), next, &cpus);
        next += config.vcpus as usize;
        place(&mut guest);
        GUESTS.put(Arc::new(guest));
    }
    networks::counted::adopt();
    log::info!("bundle: {} guests", manifest.guests.len());
    configuration::open(bundle);
}
