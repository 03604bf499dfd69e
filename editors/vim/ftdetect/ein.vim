autocmd BufRead,BufNewFile *.ein setfiletype ein
