// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reset of a function before a guest has it: alone, or with its bus where no other guest has a function there.

use alloc::format;
use alloc::string::{String, ToString};

use ::pci::capability::Capability;
use ::pci::reset::bus::{BusReset, NoBusReset};
use ::pci::reset::{self, Procedure, Way};
use ::pci::{Bdf, ConfigSpace as _};

use super::under_way;
use crate::guests::pci;

/// How a function is reset.
pub enum Reset {
    /// It alone.
    Alone(Way),
    /// With all functions of its bus.
    Bus(BusReset),
    /// Not at all, by its configuration.
    Nothing,
}

/// Plans the reset of a function that has this way to be reset alone, or none. `owner` names the other guest that has a
/// function.
///
/// # Errors
/// It cannot be reset, and its configuration does not permit that.
pub fn plan<'a>(
    alone: Option<Way>,
    bus: Result<BusReset, NoBusReset>,
    without_reset: bool,
    owner: impl Fn(Bdf) -> Option<&'a str>,
) -> Result<Reset, String> {
    if let Some(way) = alone {
        return Ok(Reset::Alone(way));
    }
    let bus = bus.map_err(|problem| problem.to_string()).and_then(|bus| {
        let taken = bus.functions().find_map(|place| Some((place, owner(place)?)));
        match taken {
            Some((place, owner)) => Err(format!("guest {owner} has {place}, which would be reset with its bus")),
            None => Ok(bus),
        }
    });
    match bus {
        Ok(bus) => Ok(Reset::Bus(bus)),
        Err(_) if without_reset => Ok(Reset::Nothing),
        Err(problem) => Err(format!(
            "it cannot be reset: not alone, and {problem}; \
             reset = \"none\" in its table in host.toml gives it to a guest all the same"
        )),
    }
}

/// Resets a function, which is as its owner before has left it, while the caller waits. Firmware's settings of it are
/// kept.
///
/// # Errors
/// It did not come back.
pub fn renew(place: Bdf, capabilities: &[Capability], reset: &Reset) -> Result<(), String> {
    check(place, reset)?;
    match reset {
        Reset::Alone(way) => pci::with_config(|config| {
            let reset = reset::reset_in_place(config, place, *way, capabilities);
            reset.map_err(|error| format!("{way}: {error}"))
        }),
        Reset::Bus(bus) => {
            log::info!(
                "PCI function {place}: is reset with its bus, as are {} functions in all",
                bus.functions().count()
            );
            pci::with_config(|config| bus.reset(config, place)).map_err(|error| format!("reset of its bus: {error}"))
        }
        Reset::Nothing => Ok(()),
    }
}

/// Begins what [`renew`] does where the function is reset alone. `None`: all is done.
///
/// # Errors
/// It did not come back.
pub fn begin(place: Bdf, capabilities: &[Capability], reset: &Reset) -> Result<Option<Procedure>, String> {
    let Reset::Alone(way) = reset else { return renew(place, capabilities, reset).map(|()| None) };
    check(place, reset)?;
    let begun = pci::with_config(|config| Procedure::begin(config, place, *way, capabilities));
    begun.map(Some).map_err(|error| format!("{way}: {error}"))
}

fn check(place: Bdf, reset: &Reset) -> Result<(), String> {
    finish_others(place, reset);
    if pci::with_config(|config| config.read(place, 0)) == u32::MAX {
        return Err("it does not answer: it was pulled out, or has failed".to_string());
    }
    Ok(())
}

/// A guest that has ended may have begun a reset: until its end firmware's settings cannot be read.
fn finish_others(place: Bdf, reset: &Reset) {
    under_way::finish(place);
    if let Reset::Bus(bus) = reset {
        bus.functions().for_each(under_way::finish);
    }
}
