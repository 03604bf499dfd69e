;;; ein-lang-mode.el --- Einlang: tensors whose coordinates have names -*- lexical-binding: t -*-

;; Package-Requires: ((emacs "27.1"))

;;; Commentary:

;; A major mode for .ein files.  With eglot, `M-x eglot' starts the language server, `ein lsp'.
;; The lists of words are written by tools/editor_words.py.

;;; Code:

(defgroup ein-lang nil "Einlang." :group 'languages)

(defcustom ein-lang-path "ein" "The ein binary." :type 'string)

(defconst ein-lang-keywords '("let" "const" "fn" "pub" "use" "if" "else" "match" "where" "as" "true" "false"))
(defconst ein-lang-soft-keywords '("in" "mod" "test" "type" "until"))
(defconst ein-lang-types '("bool" "i8" "i16" "i32" "i64" "u8" "f16" "bf16" "f32" "f64" "str"))
(defconst ein-lang-builtins '("abs" "acos" "all" "any" "argmax" "argmin" "asin" "assert" "atan" "atan2" "bit_length" "ceil" "coordinate" "cos" "cosh" "dbg" "each" "eprint" "erf" "exp" "expm1" "extent" "floor" "fold" "given" "join" "last" "len" "load" "log" "log1p" "matrix_cells" "matrix_factor" "max" "mean" "min" "names" "normal" "part" "print" "prod" "ran" "reshape" "round" "save" "shape" "sign" "sin" "sinh" "sqrt" "stop" "sum" "tan" "tanh" "typeof" "uniform"))

(defvar ein-lang-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?/ ". 12" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?_ "_" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?\\ "\\" table)
    (dolist (c '(?+ ?- ?* ?% ?= ?< ?> ?! ?& ?| ?^ ?~ ?@ ?#)) (modify-syntax-entry c "." table))
    table))

(defconst ein-lang-font-lock
  `((,(regexp-opt (append ein-lang-keywords ein-lang-soft-keywords) 'symbols) . font-lock-keyword-face)
    (,(regexp-opt ein-lang-types 'symbols) . font-lock-type-face)
    (,(concat (regexp-opt ein-lang-builtins 'symbols) "\\s-*[[(]") 1 font-lock-builtin-face)
    ("\\_<fn\\s-+\\([A-Za-z_][A-Za-z0-9_]*\\)" 1 font-lock-function-name-face)
    ("#\\[[^]]*\\]" . font-lock-preprocessor-face)
    ("@" . font-lock-warning-face)))

(defun ein-lang-indent-line ()
  "Indent by four for every open bracket."
  (interactive)
  (let* ((depth (save-excursion (back-to-indentation) (car (syntax-ppss))))
         (closing (save-excursion (back-to-indentation) (looking-at "[])}]")))
         (column (* 4 (max 0 (if closing (1- depth) depth)))))
    (if (<= (current-column) (current-indentation))
        (indent-line-to column)
      (save-excursion (indent-line-to column)))))

;;;###autoload
(define-derived-mode ein-lang-mode prog-mode "Einlang"
  "Major mode for Einlang."
  (setq-local comment-start "// ")
  (setq-local comment-start-skip "//+\\s-*")
  (setq-local indent-tabs-mode nil)
  (setq-local indent-line-function #'ein-lang-indent-line)
  (setq-local font-lock-defaults '(ein-lang-font-lock)))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.ein\\'" . ein-lang-mode))

(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs
               `(ein-lang-mode . ,(lambda (&rest _) (list ein-lang-path "lsp")))))

(provide 'ein-lang-mode)
;;; ein-lang-mode.el ends here
