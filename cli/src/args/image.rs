// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton image` and `baton key`.

use std::path::PathBuf;

use clap::Subcommand;

use super::Format;

/// A command for images.
#[derive(Debug, Subcommand)]
#[allow(missing_docs)]
pub enum ImageCommand {
    /// Show version, build, size, hand-over versions, SHA-256 and signature
    Info {
        /// The image's file
        image: PathBuf,
        #[command(flatten)]
        format: Format,
    },
    /// Check it against its seal and its signature
    Verify {
        /// The image's file
        image: PathBuf,
        /// A public key that is trusted (ed25519:…, or a file with it); several times for several
        #[arg(long)]
        key: Vec<String>,
    },
    /// Seal it with a signature; a seal that it has is replaced
    Sign {
        /// The image's file
        image: PathBuf,
        /// The file with the secret key (`baton key new`)
        #[arg(long)]
        key: PathBuf,
        /// Where to write it [default: the image's own file]
        #[arg(short, long)]
        output: Option<PathBuf>,
        /// Sign the image even if it differs from its seal
        #[arg(long)]
        reseal: bool,
    },
    /// A file that loaders take for a Linux kernel, with the bundle as its initial RAM disk: for kexec, GRUB, iPXE
    Linux {
        /// Where to write it
        #[arg(short, long)]
        output: PathBuf,
        /// The hypervisor's image [default: $BATON_IMAGE, target/baton.elf]
        #[arg(long)]
        image: Option<PathBuf>,
    },
    /// A disc that boots by itself, on BIOS and UEFI
    Iso {
        /// The bundle, as `baton bundle` makes it
        bundle: PathBuf,
        /// Where to write it
        #[arg(short, long)]
        output: PathBuf,
        /// The hypervisor's image [default: $BATON_IMAGE, target/baton.elf]
        #[arg(long)]
        image: Option<PathBuf>,
        /// The host's command line
        #[arg(long, default_value = "")]
        cmdline: String,
    },
}

/// A command for keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Make one: the secret key in FILE, readable only by its owner, the public key in FILE.pub
    New {
        /// The file
        file: PathBuf,
    },
    /// Print the public key of a file with either
    Show {
        /// The file
        file: PathBuf,
    },
}
