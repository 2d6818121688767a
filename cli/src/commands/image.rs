// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton image`: describes, checks and signs an image, and converts it for loaders.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use seal::Origin;

use super::DONE;
use crate::args::{Format, ImageCommand};
use crate::image::{self, Description, HandOver, iso, linux, packed};
use crate::keys;
use crate::options;
use crate::paths::default_image;
use crate::size::Size;

pub(super) fn run(command: &ImageCommand) -> Result<u8> {
    match command {
        ImageCommand::Info { image, format } => info(image, *format),
        ImageCommand::Verify { image, key } => verify(image, key),
        ImageCommand::Sign { image, key, output, reseal } => {
            sign(image, key, output.as_deref().unwrap_or(image), *reseal)
        }
        ImageCommand::Pack { output, image } => pack(&default_image(image.as_deref())?, output),
        ImageCommand::Unpack { image, output } => unpack(image, output),
        ImageCommand::Linux { output, image } => kernel(&default_image(image.as_deref())?, output),
        ImageCommand::Iso { bundle, output, image, cmdline } => {
            options::check("--cmdline", cmdline)?;
            disc(&default_image(image.as_deref())?, bundle, cmdline, output)
        }
    }
}

fn info(path: &Path, format: Format) -> Result<u8> {
    let description = image::describe(&image::read(path)?).with_context(|| path.display().to_string())?;
    match format.json {
        true => println!("{}", serde_json::to_string(&description)?),
        false => print!("{}", text(&description)),
    }
    Ok(DONE)
}

fn text(description: &Description) -> String {
    let size = |bytes| Size { bytes }.to_string();
    let signature = match (&description.signer, &description.seal_error) {
        (Some(signer), _) => format!("by {signer}"),
        (None, Some(error)) => error.clone(),
        (None, None) => "none: sealed, not signed".to_owned(),
    };
    let versions = match (description.oldest, description.newest) {
        (oldest, newest) if oldest == newest => format!("reads and writes version {newest}"),
        (oldest, newest) => format!("reads and writes versions {oldest} to {newest}"),
    };
    let rows = [
        ("version", description.version.clone()),
        ("build", description.build.clone()),
        ("size", format!("{} ({} in memory)", size(description.file_bytes), size(description.memory_bytes))),
        ("security", format!("version {}", description.security_version)),
        ("hand-over", versions),
    ];
    let rows = rows
        .into_iter()
        .chain(description.formats.iter().flat_map(format_rows))
        .chain([("SHA-256", description.sha256.clone()), ("signature", signature)]);
    rows.map(|(name, value)| format!("{name:<12} {value}").trim_end().to_owned() + "\n").collect()
}

/// Formats a hand-over version: the record's sections, and the state saved beside it.
fn format_rows(format: &HandOver) -> [(&'static str, String); 2] {
    let HandOver { version, sections, blocks } = format;
    [
        ("", format!("version {version}, sections: {}", sections.join(", "))),
        ("", format!("version {version}, blocks: {}", blocks.join(", "))),
    ]
}

fn verify(path: &Path, words: &[PathBuf]) -> Result<u8> {
    let public = |word: &PathBuf| keys::public(&word.to_string_lossy(), Path::new("")).map_err(|error| anyhow!(error));
    let keys = words.iter().map(public);
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let origin = image::verify(&image::read(path)?, &keys)
        .map_err(|error| anyhow!("{}: {error}; {}", path.display(), error.hint()))?;
    match origin {
        Origin::Signed(key) if keys.is_empty() => {
            println!("{}: whole, signed by {} (no --key was given to trust)", path.display(), key.id());
        }
        Origin::Signed(key) => println!("{}: whole, signed by {}, which is trusted", path.display(), key.id()),
        Origin::Unsigned => println!("{}: whole, not signed", path.display()),
    }
    Ok(DONE)
}

fn sign(path: &Path, key: &Path, output: &Path, is_reseal: bool) -> Result<u8> {
    let key = keys::secret(key)?;
    let file = image::read(path)?;
    let sealed = if is_reseal { image::reseal(&file, Some(&key)) } else { image::seal_new(&file, Some(&key)) };
    let signed = sealed.with_context(|| path.display().to_string())?;
    // Renamed, so that a concurrent reader finds either the old file or the new one.
    let part = output.with_extension("part");
    fs::write(&part, &signed).and_then(|()| fs::rename(&part, output)).with_context(|| {
        let _ = fs::remove_file(&part);
        format!("{} cannot be written", output.display())
    })?;
    println!("{}: signed by {}", output.display(), key.public().id());
    Ok(DONE)
}

fn pack(path: &Path, output: &Path) -> Result<u8> {
    let plain = image::read(path)?;
    let packed = packed::packed(&image::sealed(plain.clone())).with_context(|| path.display().to_string())?;
    write(output, &packed)?;
    let [packed, plain] = [packed, plain].map(|file| Size { bytes: file.len() as u64 });
    println!("{}: {packed} of {plain}", output.display());
    Ok(DONE)
}

fn unpack(path: &Path, output: &Path) -> Result<u8> {
    let plain = image::read(path)?;
    write(output, &plain)?;
    println!("{}: {}", output.display(), Size { bytes: plain.len() as u64 });
    Ok(DONE)
}

fn write(output: &Path, file: &[u8]) -> Result<()> {
    fs::write(output, file).with_context(|| format!("{} cannot be written", output.display()))
}

fn kernel(path: &Path, output: &Path) -> Result<u8> {
    let elf = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let file = match packed::unpacked(&elf).with_context(|| path.display().to_string())? {
        Some(plain) => linux::packed_bzimage(&plain, &elf),
        None => linux::bzimage(&elf),
    };
    let file = file.with_context(|| path.display().to_string())?;
    write(output, &file)?;
    println!("{}: a bzImage of {}", output.display(), Size { bytes: file.len() as u64 });
    Ok(DONE)
}

fn disc(image: &Path, bundle: &Path, cmdline: &str, output: &Path) -> Result<u8> {
    let firmware = iso::build(image, bundle, cmdline, output)?;
    let bytes = fs::metadata(output)?.len();
    println!("{}: {}, boots by {}", output.display(), Size { bytes }, firmware.join(" and "));
    Ok(DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_described() {
        let description = Description {
            version: "0.1.0".to_owned(),
            build: "a1b2c3".to_owned(),
            file_bytes: 800 << 10,
            memory_bytes: 1 << 20,
            oldest: 1,
            newest: 2,
            formats: vec![HandOver {
                version: 2,
                sections: vec!["Host".to_owned(), "Clock".to_owned()],
                blocks: vec!["Vcpu".to_owned()],
            }],
            sha256: "00ff".to_owned(),
            security_version: 7,
            signer: None,
            seal_error: None,
        };
        assert_eq!(
            text(&description),
            "version      0.1.0\nbuild        a1b2c3\nsize         800.0 KiB (1 MiB in memory)\n\
             security     version 7\n\
             hand-over    reads and writes versions 1 to 2\n\
             \x20            version 2, sections: Host, Clock\n             version 2, blocks: Vcpu\n\
             SHA-256      00ff\nsignature    none: sealed, not signed\n"
        );
        let signed = Description { signer: Some("ed25519:12".to_owned()), oldest: 2, ..description };
        assert!(
            text(&signed).contains("signature    by ed25519:12\n")
                && text(&signed).contains("reads and writes version 2")
        );
    }
}
