// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolution of a path to a file: through re-exports, to the item's definition.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};

use super::scan::Scanned;

/// A crate's sources: paths below `src`, and texts.
pub type Sources = BTreeMap<String, String>;
/// By importing file and imported file, the names.
pub type Imports = BTreeMap<(String, String), BTreeSet<String>>;

/// Re-exports that lead to re-exports; beyond that a name is taken for another crate's. No crate comes near.
const MOST_STEPS: usize = 16;

struct Module {
    file: String,
    parent: usize,
    children: BTreeMap<String, usize>,
    scanned: Scanned,
}

enum Target {
    Module(usize),
    /// An item of a module by its name. The path may go on: to a variant, to a function of a type.
    Item(usize, String),
}

pub struct Crate {
    modules: Vec<Module>,
}

impl Crate {
    /// Reads the modules that `lib.rs`, or else `main.rs`, leads to. A file that lacks or is no Rust is an error: both
    /// would hide imports.
    pub fn read(sources: &Sources) -> Result<Self> {
        let mut read = Self { modules: Vec::new() };
        let root = if sources.contains_key("lib.rs") { "lib.rs" } else { "main.rs" };
        read.add_file(sources, 0, root.to_owned(), "")?;
        Ok(read)
    }

    fn add_file(&mut self, sources: &Sources, parent: usize, file: String, folder: &str) -> Result<usize> {
        let text = sources.get(&file).with_context(|| format!("{file} is not there"))?;
        let scanned = Scanned::parse(text).with_context(|| file.clone())?;
        self.add_module(sources, parent, file, folder, scanned)
    }

    fn add_module(
        &mut self,
        sources: &Sources,
        parent: usize,
        file: String,
        folder: &str,
        mut scanned: Scanned,
    ) -> Result<usize> {
        let (files, nested) = (std::mem::take(&mut scanned.files), std::mem::take(&mut scanned.nested));
        let this = self.modules.len();
        self.modules.push(Module { file: file.clone(), parent, children: BTreeMap::new(), scanned });
        for name in files {
            let below = format!("{folder}{name}/");
            let beside = format!("{folder}{name}.rs");
            let path = if sources.contains_key(&beside) { beside } else { format!("{below}mod.rs") };
            let child = self.add_file(sources, this, path, &below)?;
            self.modules[this].children.insert(name, child);
        }
        for (name, inside) in nested {
            let child = self.add_module(sources, this, file.clone(), &format!("{folder}{name}/"), inside)?;
            self.modules[this].children.insert(name, child);
        }
        Ok(this)
    }

    /// Returns what each file imports of the others. The name of a module alone is no import: only what is taken out of
    /// it is.
    pub fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (this, module) in self.modules.iter().enumerate() {
            let used = module.scanned.imports.iter().map(|import| &import.path);
            for path in used.chain(&module.scanned.paths) {
                for target in self.resolve(this, path, 0) {
                    if let Target::Item(target, name) = target {
                        self.add(&mut imports, this, target, name);
                    }
                }
            }
            for target in self.globs(this, 0) {
                self.add(&mut imports, this, target, "*".to_owned());
            }
        }
        imports
    }

    fn add(&self, imports: &mut Imports, from: usize, to: usize, name: String) {
        let (from, to) = (&self.modules[from].file, &self.modules[to].file);
        if from != to {
            imports.entry((from.clone(), to.clone())).or_default().insert(name);
        }
    }

    /// The modules that everything is imported from, and those with the items that they re-export.
    fn globs(&self, this: usize, steps: usize) -> Vec<usize> {
        if steps > MOST_STEPS {
            return Vec::new();
        }
        let targets = self.modules[this].scanned.globs.iter().flat_map(|path| self.resolve(this, path, steps + 1));
        let targets = targets.map(|(Target::Module(target) | Target::Item(target, _))| target);
        targets.flat_map(|target| std::iter::once(target).chain(self.globs(target, steps + 1))).collect()
    }

    fn resolve(&self, this: usize, path: &[String], steps: usize) -> Vec<Target> {
        let Some((first, rest)) = path.split_first().filter(|_| steps <= MOST_STEPS) else { return Vec::new() };
        match first.as_str() {
            "crate" => self.below(0, rest, steps),
            "self" => self.below(this, rest, steps),
            "super" => self.below(self.modules[this].parent, rest, steps),
            _ => match self.modules[this].children.get(first) {
                Some(child) => self.below(*child, rest, steps),
                None => self.named(this, first, rest, steps),
            },
        }
    }

    /// A path; its beginning has led to a module.
    fn below(&self, module: usize, path: &[String], steps: usize) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return vec![Target::Module(module)] };
        if first == "super" || first == "self" {
            return self.resolve(module, path, steps);
        }
        // A function may be called as a module is, but no path goes through a function.
        let child = self.modules[module].children.get(first);
        if let Some(child) = child.filter(|_| !rest.is_empty()) {
            return self.below(*child, rest, steps);
        }
        let mut found = self.named(module, first, rest, steps);
        if let Some(child) = child {
            found.push(Target::Module(*child));
        } else if found.is_empty() && !self.is_imported(module, first) {
            found = self.definers(module, first, steps).map(|definer| Target::Item(definer, first.clone())).collect();
        }
        found
    }

    /// Returns the possible definers of a name that is neither written nor imported in the module: modules of which it
    /// re-exports all; if those do not, a macro of its own.
    fn definers(&self, module: usize, name: &str, steps: usize) -> impl Iterator<Item = usize> {
        let mut definers = self.globs(module, steps + 1);
        definers.retain(|definer| self.modules[*definer].scanned.definitions.contains(name));
        if definers.is_empty() {
            definers.push(module);
        }
        definers.into_iter()
    }

    fn is_imported(&self, module: usize, name: &str) -> bool {
        self.modules[module].scanned.imports.iter().any(|import| import.name == name)
    }

    /// An item of that name in the module, or what the module imports under it.
    fn named(&self, module: usize, name: &str, rest: &[String], steps: usize) -> Vec<Target> {
        let scanned = &self.modules[module].scanned;
        if scanned.definitions.contains(name) {
            return vec![Target::Item(module, name.to_owned())];
        }
        let imports = scanned.imports.iter().filter(|import| import.name == name && import.path[0] != name);
        imports.flat_map(|import| self.resolve(module, &[&import.path[..], rest].concat(), steps + 1)).collect()
    }
}
