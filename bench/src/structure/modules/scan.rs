// SPDX-License-Identifier: MIT OR Apache-2.0
//! Imports, definitions and names of one source text, as far as the image is built from it: parts that are built only
//! for tests or for documentation are left out.

use std::collections::BTreeSet;

use syn::buffer::{Cursor, TokenBuffer};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, UseTree};

/// A `use` of one name: `use a::b as c` binds `c` to `a::b`.
pub struct Import {
    pub name: String,
    pub path: Vec<String>,
}

/// A module's own items: those of a file, or of a module that is written in braces inside it.
#[derive(Default)]
pub struct Scanned {
    pub imports: Vec<Import>,
    /// Paths of `use a::b::*`.
    pub globs: Vec<Vec<String>>,
    /// Names of items, functions and macros included.
    pub definitions: BTreeSet<String>,
    /// Paths of two names or more, in code, signatures and what macros are given.
    pub paths: BTreeSet<Vec<String>>,
    /// Modules with a file of their own.
    pub files: Vec<String>,
    /// Modules in braces.
    pub nested: Vec<(String, Scanned)>,
}

impl Scanned {
    pub fn parse(text: &str) -> syn::Result<Self> {
        Ok(Self::of(&syn::parse_file(text)?.items))
    }

    fn of(items: &[Item]) -> Self {
        let mut scanned = Self::default();
        items.iter().for_each(|item| scanned.visit_item(item));
        scanned
    }

    fn add_use(&mut self, tree: &UseTree, mut path: Vec<String>) {
        match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                self.add_use(&tree.tree, path);
            }
            UseTree::Name(tree) => self.add_import(&tree.ident.to_string(), &tree.ident.to_string(), path),
            UseTree::Rename(tree) => self.add_import(&tree.rename.to_string(), &tree.ident.to_string(), path),
            UseTree::Glob(_) => self.globs.push(path),
            UseTree::Group(tree) => tree.items.iter().for_each(|tree| self.add_use(tree, path.clone())),
        }
    }

    fn add_import(&mut self, name: &str, last: &str, mut path: Vec<String>) {
        let is_parent = last == "self";
        if !is_parent {
            path.push(last.to_owned());
        }
        let name = if name == "self" { path.last().cloned().unwrap_or_default() } else { name.to_owned() };
        self.imports.push(Import { name, path });
    }

    /// A macro is given tokens, which need not be Rust: whatever has the form of a path in them is taken for one.
    fn add_tokens(&mut self, mut cursor: Cursor) {
        while !cursor.eof() {
            if let Some((inside, _, _, after)) = cursor.any_group() {
                self.add_tokens(inside);
                cursor = after;
            } else if let Some((first, after)) = cursor.ident() {
                let (path, after) = path_of(first.to_string(), after);
                self.add_path(path);
                cursor = after;
            } else {
                cursor = cursor.token_tree().expect("it is not the end").1;
            }
        }
    }

    fn add_path(&mut self, path: Vec<String>) {
        if path.len() > 1 {
            self.paths.insert(path);
        }
    }
}

fn path_of(first: String, mut cursor: Cursor) -> (Vec<String>, Cursor) {
    let mut path = vec![first];
    while let Some((name, after)) = separator(cursor).and_then(Cursor::ident) {
        path.push(name.to_string());
        cursor = after;
    }
    (path, cursor)
}

fn separator(cursor: Cursor) -> Option<Cursor> {
    let (first, cursor) = cursor.punct()?;
    let (second, cursor) = cursor.punct()?;
    (first.as_char() == ':' && second.as_char() == ':').then_some(cursor)
}

/// Returns whether an item with these attributes is no part of an image: `cfg(test)`, `cfg(any(test, …))`, `cfg(doc)`.
fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| match &attribute.meta {
        Meta::List(list) => {
            let condition = list.tokens.to_string();
            let mut words = condition.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            !condition.starts_with("not") && words.any(|word| word == "test" || word == "doc")
        }
        _ => false,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

impl<'ast> Visit<'ast> for Scanned {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_left_out(attributes(item)) {
            return;
        }
        self.definitions.extend(defined(item));
        match item {
            Item::Use(item) => self.add_use(&item.tree, Vec::new()),
            Item::Mod(item) => match &item.content {
                Some((_, items)) => self.nested.push((item.ident.to_string(), Self::of(items))),
                None => self.files.push(item.ident.to_string()),
            },
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_left_out(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add_path(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.add_tokens(TokenBuffer::new2(called.tokens.clone()).begin());
    }
}
