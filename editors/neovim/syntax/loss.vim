" Made by python -m udcp_dsl.language.editors
if exists("b:current_syntax")
  finish
endif

syn keyword lossStatement labels hierarchy costs distance category categories actions param input limit let loss
syn keyword lossOperator and or not if then else
syn keyword lossClause by column default edge from in levels of path per row
syn keyword lossAtom size sum max min diameter spread radius count nodes any all within empty worst sqrt log1p
syn match lossNumber "\<\(0\|[1-9][0-9]*\)\(\.[0-9]\+\)\?\([eE][+-]\?[0-9]\+\)\?\>"
syn match lossPart "\.\@1<=\h\w*"
syn match lossDefault "\<default\ze\s*:" contained
syn region lossString start=+"+ skip=+\\.+ end=+"+ oneline
syn match lossComment "#.*$" contains=@Spell
syn region lossBraces start="{" end="}" transparent contains=lossComment,lossString,lossNumber,lossDefault,lossBraces

hi def link lossStatement Keyword
hi def link lossOperator Operator
hi def link lossClause Keyword
hi def link lossDefault Keyword
hi def link lossAtom Function
hi def link lossNumber Number
hi def link lossPart Identifier
hi def link lossString String
hi def link lossComment Comment

setlocal commentstring=#\ %s
let b:current_syntax = "loss"
