// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton image` and `baton key`.

use std::path::PathBuf;

use clap::Subcommand;

use super::Format;

/// A command for images.
#[derive(Debug, Subcommand)]
#[allow(missing_docs)]
pub enum ImageCommand {
    /// Show an image's version, build, size, hand-over versions, SHA-256 and signature
    Info {
        /// The image's file
        image: PathBuf,
        #[command(flatten)]
        format: Format,
    },
    /// Check an image against its seal and its signature
    Verify {
        /// The image's file
        image: PathBuf,
        /// A public key that is trusted (ed25519:…, or a file with it); several times for several
        #[arg(long)]
        key: Vec<PathBuf>,
    },
    /// Sign an image: it gets a signed seal in place of the one that it has
    Sign {
        /// The image's file
        image: PathBuf,
        /// The file with the secret key (`baton key new`)
        #[arg(long)]
        key: PathBuf,
        /// The file to write it to [default: the image's own file]
        #[arg(short, long)]
        output: Option<PathBuf>,
        /// Sign the image even if it differs from its seal
        #[arg(long)]
        reseal: bool,
    },
    /// Pack an image: a file that boots as it does, and is smaller; the tool unpacks it where it needs to
    Pack {
        /// The file to write it to
        #[arg(short, long)]
        output: PathBuf,
        /// The hypervisor's image [default: $BATON_IMAGE, target/baton.elf]
        #[arg(long)]
        image: Option<PathBuf>,
    },
    /// Unpack an image
    Unpack {
        /// The packed image
        image: PathBuf,
        /// The file to write it to
        #[arg(short, long)]
        output: PathBuf,
    },
    /// Write a file that loaders accept as a Linux kernel, with the bundle as initial RAM disk: for kexec, GRUB, iPXE
    Linux {
        /// The file to write it to
        #[arg(short, long)]
        output: PathBuf,
        /// The hypervisor's image [default: $BATON_IMAGE, target/baton.elf]
        #[arg(long)]
        image: Option<PathBuf>,
    },
    /// Write a disc that boots by itself, on BIOS and UEFI
    Iso {
        /// The bundle, as `baton bundle` makes it
        bundle: PathBuf,
        /// The file to write it to
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
    /// Make a key pair: the secret key in FILE, readable only by its owner, the public key in FILE.pub
    #[command(alias = "create")]
    New {
        /// The file
        file: PathBuf,
    },
    /// Print the public key of a key pair, from either file
    Show {
        /// The file
        file: PathBuf,
    },
    /// List the keys that operate a running host, and their roles
    List(Format),
    /// Revoke a control key's role in a running host: its sessions end. A reset of the machine restores the role:
    /// remove the key from host.toml, too
    Revoke {
        /// The name of the key
        #[arg(value_name = "NAME")]
        revoked: String,
    },
}
