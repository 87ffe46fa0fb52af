/**
 * Parses YAML. `<<` merges.
 *
 * @param version of YAML: in 1.1, `yes` is true.
 * @throws {Error} that names the file and the line, and quotes nothing, because the file may hold secrets.
 */
export async function parseYaml(
  text: string,
  path: string,
  version: '1.1' | '1.2' = '1.2',
): Promise<unknown> {
  const { LineCounter, parseDocument } = await import('yaml')
  const lines = new LineCounter()
  const document = parseDocument(text, { version, merge: true, lineCounter: lines, prettyErrors: false })
  const [error] = [...document.errors, ...document.warnings]
  if (error) {
    throw new Error(
      `${path} is not valid YAML (${error.code}): look at line ${lines.linePos(error.pos[0]).line}`,
    )
  }
  try {
    return document.toJS({ maxAliasCount: 100 })
  } catch {
    throw new Error(
      `${path} is not valid YAML: it has an alias without an anchor, too many aliases, or a merge of what is no mapping`,
    )
  }
}
