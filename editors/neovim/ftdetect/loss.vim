autocmd BufRead,BufNewFile *.loss setfiletype loss
