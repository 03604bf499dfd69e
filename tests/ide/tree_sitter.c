// What the grammar of editors/tree-sitter sees in programs, for grammars.py: reads a list of files, one a line, and writes a line
// of JSON for each: {"lines": [a letter for each unit of UTF-16, …], "mistakes": [rows with a node that is a mistake, …]}.
// With --statements: {"statements": [kinds of the nodes at the top, …]}. With --query FILE: whether it is a query of this grammar.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tree_sitter/api.h>

const TSLanguage *tree_sitter_ein(void);

static char *read_file(const char *path, uint32_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) exit(2);
  fseek(file, 0, SEEK_END);
  *size = (uint32_t)ftell(file);
  rewind(file);
  char *text = malloc(*size + 1);
  if (fread(text, 1, *size, file) != *size) exit(2);
  text[*size] = '\0';
  fclose(file);
  return text;
}

static char class_of(const char *type, char outer) {
  if (strcmp(type, "comment") == 0 || strcmp(type, "hash_bang") == 0) return 'c';
  if (strcmp(type, "number") == 0) return 'n';
  if (strcmp(type, "placeholder") == 0) return '?';
  if (strcmp(type, "string") == 0) return outer == '?' ? '?' : 's';
  return outer;
}

static void classify(TSNode node, char outer, char *classes) {
  char own = class_of(ts_node_type(node), outer);
  uint32_t begin = ts_node_start_byte(node), end = ts_node_end_byte(node);
  if (own != outer) memset(classes + begin, own, end - begin);
  for (uint32_t i = 0; i < ts_node_child_count(node); ++i) classify(ts_node_child(node, i), own, classes);
}

static void mistakes(TSNode node, const char **between) {
  if (!ts_node_has_error(node)) return;
  if (ts_node_is_missing(node) || strcmp(ts_node_type(node), "ERROR") == 0) {
    printf("%s%u", *between, ts_node_start_point(node).row);
    *between = ", ";
    return;
  }
  for (uint32_t i = 0; i < ts_node_child_count(node); ++i) mistakes(ts_node_child(node, i), between);
}

static int check_query(const char *path) {
  uint32_t size, place;
  TSQueryError error;
  char *text = read_file(path, &size);
  TSQuery *query = ts_query_new(tree_sitter_ein(), text, size, &place, &error);
  if (!query) fprintf(stderr, "%s: no node of the grammar, or no query: %.60s\n", path, text + place);
  free(text);
  return query ? 0 : 1;
}

int main(int count, char **arguments) {
  if (count > 2 && strcmp(arguments[1], "--query") == 0) return check_query(arguments[2]);
  int statements = count > 1 && strcmp(arguments[1], "--statements") == 0;
  TSParser *parser = ts_parser_new();
  if (!ts_parser_set_language(parser, tree_sitter_ein())) return 2;
  char path[4096];
  while (fgets(path, sizeof path, stdin)) {
    path[strcspn(path, "\n")] = '\0';
    uint32_t size;
    char *text = read_file(path, &size);
    TSTree *tree = ts_parser_parse_string(parser, NULL, text, size);
    TSNode root = ts_tree_root_node(tree);
    if (statements) {
      printf("{\"statements\": [");
      for (uint32_t i = 0; i < ts_node_named_child_count(root); ++i) {
        printf("%s\"%s\"", i ? ", " : "", ts_node_type(ts_node_named_child(root, i)));
      }
    } else {
      char *classes = malloc(size + 1);
      memset(classes, '.', size + 1);
      classify(root, '.', classes);
      printf("{\"lines\": [\"");
      for (uint32_t i = 0; i < size; ++i) {
        unsigned char byte = (unsigned char)text[i];
        if (byte == '\n') {
          printf("\", \"");
        } else if ((byte & 0xC0) != 0x80) {
          putchar(classes[i]);
          if (byte >= 0xF0) putchar(classes[i]);
        }
      }
      printf("\"], \"mistakes\": [");
      const char *between = "";
      mistakes(root, &between);
      free(classes);
    }
    printf("]}\n");
    ts_tree_delete(tree);
    free(text);
  }
  ts_parser_delete(parser);
  return 0;
}
