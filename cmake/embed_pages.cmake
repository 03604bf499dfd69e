# Writes OUT, a C++ list of {code, text} for every page in PAGES, included by src/cli/explain.cc.
file(GLOB pages ${PAGES}/*.md)
set(text "")
foreach(page ${pages})
  get_filename_component(code ${page} NAME_WE)
  file(READ ${page} body)
  string(APPEND text "{\"${code}\", R\"page(${body})page\"},\n")
endforeach()
file(WRITE ${OUT} "${text}")
