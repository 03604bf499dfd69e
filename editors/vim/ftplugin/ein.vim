" Settings of Einlang's buffers; in Neovim also the language server.
if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1

setlocal commentstring=//\ %s comments=:///,:// expandtab shiftwidth=4 softtabstop=4
setlocal cindent cinoptions=(s,m1 suffixesadd=.ein
let b:undo_ftplugin = "setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< cindent< cinoptions< suffixesadd<"

" `let g:ein_lsp = 0` leaves the server to another plugin; `g:ein_path` names the binary.
if has("nvim-0.7") && get(g:, "ein_lsp", 1) && executable(get(g:, "ein_path", "ein"))
lua << EOL
local clients = _G.ein_clients or {}
_G.ein_clients = clients
local root = vim.fn.expand("%:p:h")
if vim.fn.has("nvim-0.8") == 1 then
  vim.lsp.start({ name = "ein", cmd = { vim.g.ein_path or "ein", "lsp" }, root_dir = root })
else
  clients[root] = clients[root] or vim.lsp.start_client({ name = "ein", cmd = { vim.g.ein_path or "ein", "lsp" }, root_dir = root })
  vim.lsp.buf_attach_client(0, clients[root])
end
EOL
endif
