// SPDX-License-Identifier: MIT OR Apache-2.0
//! The site's pages: every chapter is there, every link leads somewhere, and a reader can get from each page to each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::{chapters, rendered, root, texts};

/// The pages by name, each on one line, since pandoc breaks lines between attributes, too; none on a machine without
/// pandoc.
fn pages() -> BTreeMap<String, String> {
    let texts = rendered("site").map(|folder| texts(&folder, ".html")).unwrap_or_default();
    texts.into_iter().map(|(name, text)| (name, text.replace('\n', " "))).collect()
}

/// The values of an attribute, in order. Quotes of a text are entities, so that no text is taken for an attribute.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    between(page, &format!(" {attribute}=\""), "\"")
}

/// The text between two others, as often as it occurs.
fn between<'a>(page: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    page.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

/// The lines of a source that are headings, those of listings left out.
fn headings(source: &str) -> Vec<String> {
    let outside = source.split("```").step_by(2);
    let lines = outside.flat_map(str::lines).filter(|line| line.starts_with('#'));
    lines.map(|line| line.trim_start_matches('#').trim().to_owned()).collect()
}

/// The name by which links of the sources lead to a heading: small letters, hyphens for spaces, no other punctuation.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_chapter_of_the_guide_is_a_page_with_its_headings() {
    let pages = pages();
    if pages.is_empty() {
        return;
    }
    let guide = chapters().into_iter().map(|name| (format!("docs/guide/{name}.md"), name));
    let others = ["guide", "tool", "install", "pmu", "timeline", "threats", "conformance", "bench"];
    let others = others.map(|name| (format!("docs/{name}.md"), name.to_owned()));
    let front = ("README.md".to_owned(), "index".to_owned());
    let sources: Vec<_> = guide.chain(others).chain([front]).collect();
    assert_eq!(pages.len(), sources.len(), "{:?}", pages.keys());
    for (source, name) in sources {
        let page = pages.get(&format!("{name}.html")).unwrap_or_else(|| panic!("{source} is no page: see PAGES"));
        let there: BTreeSet<_> = values(page, "id").into_iter().collect();
        let headings = headings(&fs::read_to_string(root().join(&source)).expect("text"));
        let missing: Vec<_> = headings.iter().filter(|heading| !there.contains(&*anchor(heading))).collect();
        assert!(!headings.is_empty() && missing.is_empty(), "{source}: headings that no link reaches: {missing:?}");
    }
}

#[test]
fn every_link_of_the_site_leads_to_a_page_and_an_anchor_that_exist() {
    let pages = pages();
    for (name, page) in &pages {
        let inner = values(page, "href").into_iter().filter(|link| !link.contains("://") && !link.ends_with(".css"));
        for link in inner {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { Some(page) } else { pages.get(file) };
            let target = target.unwrap_or_else(|| panic!("{name}: {link}: no such page"));
            assert!(anchor.is_empty() || values(target, "id").contains(&anchor), "{name}: {link}: no such anchor");
        }
    }
}

#[test]
fn a_page_loads_its_style_and_its_pictures_from_beside_it_and_nothing_else() {
    let Some(folder) = rendered("site") else { return };
    let mut pictures = BTreeSet::new();
    for (name, page) in pages() {
        assert!(!page.contains("<script") && !page.contains("<iframe"), "{name} has a script or a frame");
        let sheets: Vec<_> = between(&page, "<link", ">").into_iter().flat_map(|link| values(link, "href")).collect();
        assert_eq!(sheets, ["style.css"], "{name}");
        for picture in between(&page, "<img", ">") {
            let file = values(picture, "src")[0].to_owned();
            assert!(folder.join(&file).is_file(), "{name}: {file}: no such picture");
            assert!(values(picture, "alt").iter().any(|text| !text.is_empty()), "{name}: {file}: no words for it");
            pictures.insert(file);
        }
    }
    let style = fs::read_to_string(folder.join("style.css")).expect("the style sheet");
    assert!(!style.contains("url(") && !style.contains("@import"), "the style sheet loads something");
    let copied = fs::read_dir(folder.join("pictures")).expect("pictures").flatten();
    let copied = copied.map(|entry| format!("pictures/{}", entry.file_name().to_string_lossy())).collect();
    assert_eq!(pictures, copied, "pictures that pages show (left), and those of the site (right)");
}

#[test]
fn every_page_has_a_title_a_language_one_heading_and_the_way_to_all_others() {
    let pages = pages();
    let names: BTreeSet<&str> = pages.keys().map(String::as_str).collect();
    let mut titles = BTreeSet::new();
    for (name, page) in &pages {
        assert!(page.contains("<html lang=\"en\">"), "{name} has no language");
        assert_eq!(page.matches("<h1").count(), 1, "{name}: headings of the first level");
        let title = between(page, "<title>", "</title>");
        assert!(title.len() == 1 && title[0].contains("Baton"), "{name}: {title:?}");
        assert!(titles.insert(title[0]), "{name}: another page has the title {}", title[0]);
        let ways = between(page, "<nav aria-label=\"Chapters\">", "</nav>").concat();
        assert_eq!(values(&ways, "href").into_iter().collect::<BTreeSet<_>>(), names, "{name}: its navigation");
        let here = between(&ways, "<a href=\"", "</a>").into_iter().filter(|way| way.contains("aria-current=\"page\""));
        let here: Vec<_> = here.map(|way| way.split('"').next()).collect();
        assert_eq!(here, [Some(name.as_str())], "{name}: the page that its navigation marks");
        let contents = page.matches("<nav aria-label=\"On this page\">").count();
        assert_eq!(contents, usize::from(page.contains("<h2")), "{name}: tables of contents");
        let (all, once) = (values(page, "id"), values(page, "id").into_iter().collect::<BTreeSet<_>>());
        assert_eq!(all.len(), once.len(), "{name}: two elements have one name");
    }
}

#[test]
fn what_is_no_page_of_the_site_is_named_by_its_path() {
    let pages = pages();
    let Some(explanation) = pages.get("explanation.html") else { return };
    assert!(explanation.contains("[<code>docs/architecture/update.md</code>]"));
    assert!(pages["conformance.html"].contains("<code>crates/vm/src/cpu/cr4.rs</code>"));
    let leads_to_source = |page: &String| values(page, "href").iter().any(|link| link.contains(".md"));
    let leading: Vec<_> = pages.iter().filter(|(_, page)| leads_to_source(page)).map(|(name, _)| name).collect();
    assert!(leading.is_empty(), "{leading:?} have links to Markdown");
}
