// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the host's configuration: what is possible is decided in [`bundle`], here it takes effect. An image
//! begins with its bundle; a changed configuration goes to the next image as one ([`crate::lifecycle::restart`]).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use bundle::{GuestConfig, Manifest, OnPanic, Refused, Settings};
use units::ByteSize;
use wire::{EventKind, FileInfo, MAX_PAGE_BYTES, Refusal, RefusalCode, ReplyBody, VmSettings, page};

use super::named::find;
use crate::arch::memory::FRAMES;
use crate::arch::percpu;
use crate::guests::configuration::{self, runs};
use crate::guests::events::record;
use crate::guests::guest::Guest;
use crate::guests::pci::assignments;
use crate::guests::slots::GUESTS;
use crate::guests::{networks, sockets};
use crate::kernel::cpus;

/// The most files collected for one page; a frame holds fewer.
const PAGE_FILES: usize = 64;

/// A page of the configuration.
pub fn page(from_byte: u32) -> ReplyBody {
    let content = configuration::manifest().to_content();
    let rest = content.get(from_byte as usize..).unwrap_or_default();
    let bytes = rest[..rest.len().min(MAX_PAGE_BYTES)].to_vec();
    ReplyBody::Config { bytes, total_bytes: content.len() as u32 }
}

/// Changes settings of a guest.
///
/// # Errors
/// They are not possible; nothing has changed.
pub fn set(name: &str, settings: &VmSettings) -> Result<ReplyBody, Refusal> {
    let guest = find(name)?;
    let before = guest.config_now();
    let config = wanted(settings)?.apply(&before, runs(&guest)).map_err(|refused| refusal(name, &refused))?;
    if (config.vcpus, config.memory_bytes) == (before.vcpus, before.memory_bytes) {
        guest.settings.take(&config);
        (0..config.vcpus as usize).for_each(|vcpu| percpu::wake(guest.cpu_to_notify(vcpu)));
    } else {
        put(guest.number, config, Some(&guest));
    }
    configuration::note_change();
    record(EventKind::VmChanged { name: name.to_string() });
    Ok(ReplyBody::Done)
}

fn wanted(settings: &VmSettings) -> Result<Settings, Refusal> {
    let on_panic = settings.on_panic.as_deref().map(|word| {
        OnPanic::from_word(word).ok_or_else(|| {
            let words = OnPanic::WORDS.map(|(_, word)| word).join(", ");
            let word = wire::bounded(word, wire::MAX_NAME_BYTES);
            invalid(format!("on_panic = {word:?} is unknown"), format!("possible are {words}"))
        })
    });
    let &VmSettings { weight, autostart, vcpus, memory_bytes, cap_percent, memory_max_bytes, on_panic: _ } = settings;
    Ok(Settings {
        weight,
        on_panic: on_panic.transpose()?,
        autostart,
        vcpus,
        memory_bytes,
        cap_percent,
        memory_max_bytes,
    })
}

/// Removes a guest that does not run.
///
/// # Errors
/// It runs, or others need it; nothing has changed.
pub fn delete(name: &str) -> Result<ReplyBody, Refusal> {
    let guest = find(name)?;
    if runs(&guest) {
        let reason = format!("guest '{name}' is {}", guest.status().state);
        let hint = format!("`baton vm stop {name}` first");
        return Err(Refusal { code: RefusalCode::WrongState, reason, hint });
    }
    if !assignments::functions_of(&guest).is_empty() {
        let reason = format!("guest '{name}' has PCI functions");
        let hint = format!("`baton pci release FUNCTION {name}` first");
        return Err(Refusal { code: RefusalCode::WrongState, reason, hint });
    }
    configuration::manifest().remove(name).map_err(|refused| refusal(name, &refused))?;
    GUESTS.remove(guest.number);
    networks::leave(&guest.config.nics);
    sockets::leave(guest.number);
    configuration::note_change();
    record(EventKind::VmDeleted { name: name.to_string() });
    Ok(ReplyBody::Done)
}

/// Adds a guest.
///
/// # Errors
/// It cannot be; nothing has changed.
pub fn create(content: &[u8]) -> Result<ReplyBody, Refusal> {
    let addition =
        Manifest::addition_from_content(content).map_err(|problem| refusal("", &Refused::Problem(problem)))?;
    let config = configuration::manifest().add(addition).map_err(|refused| refusal("", &refused))?;
    let free = FRAMES.lock().free_for_guests_bytes();
    let wanted = config.assured_bytes.unwrap_or(config.memory_bytes);
    if wanted > free {
        let (name, wanted, free) = (&config.name, ByteSize(wanted), ByteSize(free));
        let reason = format!("guest '{name}' needs {wanted} of memory, and the host has {free}");
        let hint = "give it less, stop a guest, or give the host more memory".into();
        return Err(Refusal { code: RefusalCode::Exhausted, reason, hint });
    }
    // There are not too many guests: this was checked with the rest.
    let Some(number) = GUESTS.free_number() else { return Err(invalid("too many guests".into(), String::new())) };
    networks::enter(number, &config).map_err(|reason| invalid(reason, String::new()))?;
    sockets::enter(number, &config);
    let name = config.name.clone();
    put(number, config, None);
    configuration::note_change();
    record(EventKind::VmCreated { name });
    Ok(ReplyBody::Done)
}

/// Puts a guest into a slot; it is in the state of the one that was there.
fn put(number: u32, config: GuestConfig, before: Option<&Guest>) {
    let others = GUESTS.all().filter(|guest| guest.number != number);
    let first = others.map(|guest| guest.config.vcpus as usize).sum();
    let guest = Guest::new(number, config, first, &cpus::threads::for_guests());
    if let Some(before) = before {
        guest.adopt_status(before.status(), None);
    }
    GUESTS.put(Arc::new(guest));
}

/// A page of the host's files.
pub fn files(from_index: u32) -> ReplyBody {
    let manifest = configuration::manifest();
    let describe = |file: &bundle::FileRecord| FileInfo {
        name: file.name.clone(),
        bytes: file.bytes,
        is_sent: configuration::was_sent(&file.name),
        is_needed: manifest.needs(&file.name),
    };
    let files = page::fill(manifest.files.iter().skip(from_index as usize).map(describe), PAGE_FILES);
    let next = from_index as usize + files.len();
    ReplyBody::Files { files, next_index: (next < manifest.files.len()).then_some(next as u32) }
}

/// Gives back a file that was sent.
///
/// # Errors
/// A guest needs it, or it was not sent.
pub fn remove_file(name: &str) -> Result<ReplyBody, Refusal> {
    if !configuration::was_sent(name) {
        let reason = match configuration::is_bundled(name) {
            true => format!("file {name:?} is the bundle's"),
            false => format!("the host has no file {:?}", wire::bounded(name, wire::MAX_NAME_BYTES)),
        };
        return Err(invalid(reason, "`baton file list` shows those that can be removed".into()));
    }
    let manifest = configuration::manifest();
    if let Some(guest) = manifest.guests.iter().find(|guest| guest.files().any(|needed| needed == name)) {
        let reason = format!("guest '{}' needs the file", guest.name);
        return Err(Refusal { code: RefusalCode::WrongState, reason, hint: "delete the guest first".into() });
    }
    configuration::remove(name);
    Ok(ReplyBody::Done)
}

fn refusal(name: &str, refused: &Refused) -> Refusal {
    let (code, hint) = match refused {
        Refused::Runs(_) => (RefusalCode::WrongState, format!("`baton vm stop {name}` first")),
        Refused::NoFile(_) => (RefusalCode::Invalid, "send it first".into()),
        Refused::NoNetwork(_) => (RefusalCode::Invalid, "`baton config show` names its networks".into()),
        _ => (RefusalCode::Invalid, String::new()),
    };
    let reason = wire::bounded(&refused.to_string(), wire::MAX_REASON_BYTES).to_string();
    Refusal { code, reason, hint }
}

fn invalid(reason: String, hint: String) -> Refusal {
    Refusal { code: RefusalCode::Invalid, reason, hint }
}
