"""The rows of the table, a module a group; each is a function from the workbench to rows."""
