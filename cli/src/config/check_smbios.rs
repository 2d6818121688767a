// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys `uuid`, `serial` and `oem_strings` of guests, which their SMBIOS tables state.

use bundle::{NotAUuid, SmbiosConfig, Uuid, is_text, limits};
use toml::de::DeValue;

use super::read::{Section, list, text};

/// The UUIDs that guests have been given.
#[derive(Default)]
pub(super) struct Uuids(Vec<Uuid>);

/// Reads the values for the tables of a guest.
pub(super) fn smbios(section: &mut Section<'_, '_>, taken: &mut Uuids) -> SmbiosConfig {
    let uuid = section.placed("uuid", uuid);
    if let Some((uuid, at)) = &uuid {
        if taken.0.contains(uuid) {
            section.complain(Some(*at), "another guest has the same uuid; change one of them");
        }
        taken.0.push(*uuid);
    }
    let serial = section.optional("serial", |value| printable(&text(value)?, limits::SERIAL_BYTES));
    let oem_strings = section.placed("oem_strings", list(text));
    let oem_strings = oem_strings.map(|(texts, at)| checked(section, texts, at)).unwrap_or_default();
    let uuid = uuid.map(|(uuid, _)| uuid);
    SmbiosConfig::new(uuid, serial.as_deref(), oem_strings.iter().map(String::as_str))
}

fn uuid(value: &DeValue<'_>) -> Result<Uuid, String> {
    let text = text(value)?;
    text.parse().map_err(|error| match error {
        NotAUuid::Malformed => {
            format!("= {text:?} is no UUID; write 32 hexadecimal digits, as \"0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0\"")
        }
        NotAUuid::Absent => format!("= {text:?} stands for no UUID; write another, or leave the key out"),
    })
}

fn checked(section: &Section<'_, '_>, texts: Vec<String>, at: usize) -> Vec<String> {
    for text in &texts {
        if let Err(message) = printable(text, limits::OEM_STRING_BYTES) {
            section.complain(Some(section.place_of(text, at)), format_args!("oem_strings: a text {message}"));
        }
    }
    let (count, bytes) = (texts.len(), texts.iter().map(String::len).sum::<usize>());
    let (most, most_bytes) = (limits::OEM_STRINGS, limits::OEM_STRINGS_BYTES);
    if count > most || bytes > most_bytes {
        let problem = format_args!(
            "oem_strings: there are {count} texts of {bytes} bytes; at most {most} of {most_bytes} bytes together are \
             possible"
        );
        section.complain(Some(at), problem);
    }
    texts
}

/// Checks that SMBIOS can hold a text.
fn printable(text: &str, most: usize) -> Result<String, String> {
    if is_text(text, most) {
        return Ok(text.to_owned());
    }
    let is_other = |c: &char| *c != ' ' && !c.is_ascii_graphic();
    Err(match text.chars().find(is_other) {
        Some(other) => format!("= {text:?} holds {other:?}; SMBIOS has printable ASCII alone"),
        None if text.is_empty() => "is empty; write a character at least, or leave it out".to_owned(),
        None => format!("has {} characters; at most {most} are possible", text.len()),
    })
}
