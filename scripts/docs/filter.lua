-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Pandoc's filter of scripts/docs.sh: what the repository's Markdown means on a page of the site and in a manual page.
--
-- The environment has the source (DOCS_SOURCE), and, a line each, all sources with the names of their pages
-- (DOCS_PAGES).

local source = os.getenv("DOCS_SOURCE")
local is_manual = FORMAT == "man"
local pages, order = {}, {}
for path, name in os.getenv("DOCS_PAGES"):gmatch("(%S+) (%S+)") do
  pages[path] = name
  table.insert(order, name)
end

-- A path in the repository from one that is relative to the source's folder.
local function in_repository(path)
  local parts = {}
  for part in (source:match("^(.*/)") or ""):gmatch("[^/]+") do table.insert(parts, part) end
  for part in path:gmatch("[^/]+") do
    if part == ".." then table.remove(parts) elseif part ~= "." then table.insert(parts, part) end
  end
  return table.concat(parts, "/")
end

-- The text of a link, and behind it where it leads: for what cannot be followed from here. Square brackets, since many
-- links are in round ones. A text that is the place itself is not repeated.
local function named(text, place)
  local shown = pandoc.utils.stringify(text)
  if shown == pandoc.utils.stringify(place) then return place end
  local result = pandoc.List(text)
  result:extend { pandoc.Space(), pandoc.Str("["), place, pandoc.Str("]") }
  return result
end

-- The name of a manual page in a text, as manual pages have it: the name bold, the section plain. Groff's `\%` keeps it
-- on one line.
local function manual_page(name, section)
  local on_one_line = pandoc.RawInline("man", "\\%")
  return pandoc.Span { on_one_line, pandoc.Strong { pandoc.Str(name) }, pandoc.Str("(" .. section .. ")") }
end

function Link(link)
  if link.target:find("://", 1, true) then return nil end
  local file, anchor = link.target:match("^([^#]*)(#?.*)$")
  local path = file == "" and source or in_repository(file)
  local page = pages[path]
  if page == nil or is_manual and page == "index" then return named(link.content, pandoc.Code(path)) end
  if not is_manual then
    link.target = (path == source and "" or page .. ".html") .. anchor
    return link
  end
  if path == source then return link.content end
  if pandoc.utils.stringify(link):match("%.md$") then return manual_page("baton-" .. page, "7") end
  return named(link.content, manual_page("baton-" .. page, "7"))
end

-- Names stay whole in a manual page. Only those that are longer than an indented line may end one behind an underscore
-- (groff's `\:`); else they would stand out of the page, with a warning.
local longest_whole = 56
function Code(code)
  if not is_manual or #code.text <= longest_whole then return nil end
  local parts = pandoc.List()
  for part in code.text:gmatch("[^_]*_*") do
    if part ~= "" then parts:extend { pandoc.Code(part), pandoc.RawInline("man", "\\:") } end
  end
  return parts
end

-- Pictures are copied to one folder. A manual page has what a picture shows instead, in words.
function Image(image)
  if is_manual then return pandoc.Emph(named({ pandoc.Str("Picture:") }, pandoc.Span(image.caption))) end
  image.src = "pictures/" .. image.src:match("[^/]+$")
  return image
end

-- Who has no mouse scrolls wide listings by keys, which takes a place among what Tab reaches.
function CodeBlock(block)
  if is_manual then return nil end
  return pandoc.CodeBlock(block.text, pandoc.Attr("", {}, { tabindex = "0" }))
end

-- A manual page has a list for a table: the first cell of a row, and indented below it the others, behind the headings
-- of their columns where there are several. Tables of a terminal's width break long cells into ribbons.
local function table_as_list(tbl)
  local simple = pandoc.utils.to_simple_table(tbl)
  local items = {}
  for _, row in ipairs(simple.rows) do
    local text = pandoc.List()
    for column = 2, #row do
      local cell = pandoc.utils.blocks_to_inlines(row[column])
      if #cell > 0 then
        -- Pandoc's own line break would be a paragraph, which ends the indentation.
        if #text > 0 then text:insert(pandoc.RawInline("man", "\n.br\n")) end
        if #row > 2 then
          text:extend(pandoc.utils.blocks_to_inlines(simple.headers[column]))
          text:extend { pandoc.Str(":"), pandoc.Space() }
        end
        text:extend(cell)
      end
    end
    table.insert(items, { pandoc.utils.blocks_to_inlines(row[1]), { { pandoc.Plain(text) } } })
  end
  return pandoc.DefinitionList(items)
end

-- On the site, a browser chooses the widths of columns: pandoc's would all be the same.
function Table(tbl)
  if is_manual then return table_as_list(tbl) end
  tbl.colspecs = tbl.colspecs:map(function(spec) return { spec[1] } end)
  return pandoc.Div({ tbl }, pandoc.Attr("", { "wide" }, { tabindex = "0" }))
end

-- Comments are for readers of the source. Any other HTML is `<name>` that someone forgot to put between backquotes: a
-- page would show nothing in its place.
local function refuse_html(raw)
  if raw.text:match("^%s*<!%-%-") then return {} end
  error(source .. ": " .. raw.text .. " is HTML; put it between backquotes")
end
RawBlock = refuse_html
RawInline = refuse_html

-- The sections that every manual page has, around those of the source.
local function as_manual_page(doc, title)
  local name = "baton-" .. pages[source]
  local blocks = pandoc.List {
    pandoc.Header(1, "NAME"),
    pandoc.Para { pandoc.Str(name), pandoc.Space(), pandoc.Str("-"), pandoc.Space(), pandoc.Str(title) },
    pandoc.Header(1, "DESCRIPTION"),
  }
  for _, block in ipairs(doc.blocks) do
    if block.t == "Header" then block.level = block.level - 1 end
    blocks:insert(block)
  end
  local others = pandoc.List { manual_page("baton", "1") }
  for _, page in ipairs(order) do
    if page ~= "index" and page ~= pages[source] then
      others:extend { pandoc.Str(","), pandoc.Space(), manual_page("baton-" .. page, "7") }
    end
  end
  blocks:extend { pandoc.Header(1, "SEE ALSO"), pandoc.Para(others) }
  return pandoc.Pandoc(blocks, doc.meta)
end

-- The heading of the source becomes the page's title, so that a table of contents has only what is below it.
function Pandoc(doc)
  local heading = doc.blocks:find_if(function(block) return block.t == "Header" end)
  if heading == nil or heading.level ~= 1 then error(source .. ": the first heading is not '# …'") end
  doc.blocks = doc.blocks:filter(function(block) return block ~= heading end)
  local title = pandoc.utils.stringify(heading)
  if is_manual then
    doc.meta.title = "baton-" .. pages[source]
    return as_manual_page(doc, title)
  end
  doc.meta.title = pandoc.MetaInlines(heading.content)
  doc.meta.anchor = heading.identifier
  doc.meta.pagetitle = title == "Baton" and title or title .. " – Baton"
  return doc
end
