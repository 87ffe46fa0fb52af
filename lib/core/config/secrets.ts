import { readFileSync, statSync } from 'node:fs'
import { isJsonObject, type JsonObject } from '../json/index.ts'
import { UNSET } from './access-members.ts'
import { formatPath } from './config-faults.ts'

/** Variables by name. */
export type Variables = Readonly<Record<string, string | undefined>>

/** A source whose secrets are replaced by their values. */
export interface WithSecrets {
  readonly value: unknown
  readonly faults: readonly string[]
  /** The files that were read, or should have been. */
  readonly files: ReadonlySet<string>
}

/** A secret is short; what is longer is another file, by mistake. */
const MAX_FILE_BYTES = 1024 * 1024
/** A longer text, or one of several lines, is no path: it may be the secret itself, and is not repeated. */
const MAX_PATH = 200

/** Returns a path. There may be many keys: it is only written for a fault. */
type PathOf = () => readonly PropertyKey[]
type Edit = (value: unknown, pathOf: PathOf) => unknown

/** Returns a copy of the source in which each `env:NAME` and `file:PATH` of a secret is replaced by what it stands for. */
export function withSecrets(source: unknown, env: Variables): WithSecrets {
  const faults: string[] = []
  const files = new Set<string>()
  const absent = (pathOf: PathOf, fault: string): string => {
    const path = formatPath(pathOf())
    faults.push(`${path}: ${fault}`)
    return UNSET + path
  }
  const readFile = (file: string, pathOf: PathOf, quoted = true): string => {
    const read = readSecretFile(file)
    const isPath = file.length <= MAX_PATH && !/[\r\n\0]/.test(file)
    // A text without `file:` that begins with neither a slash nor a dot may be a key, and not a path.
    if (isPath && (quoted || /^\.{0,2}\//.test(file))) files.add(file)
    if ('fault' in read)
      return absent(pathOf, quoted && isPath ? read.fault : 'must be the path of a file that can be read')
    files.add(file)
    return read.text
  }
  const secret: Edit = (value, pathOf) => {
    if (typeof value !== 'string') return value
    if (value.startsWith('file:')) return readFile(value.slice('file:'.length), pathOf)
    if (!value.startsWith('env:')) return value
    const name = value.slice('env:'.length)
    return env[name] || absent(pathOf, `the environment variable ${name} is not set`)
  }
  const eachSecret: Edit = (value, pathOf) => {
    if (!isJsonObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, v]) => [name, secret(v, () => [...pathOf(), name])]),
    )
  }
  const apiKey = editing({
    oauth: editing({ clientId: secret, clientSecret: secret }),
    google: editing({ credentials: secret }),
  })
  /** A path, with or without `file:`. What is PEM already stays as it is, also behind a comment. */
  const pem: Edit = (value, pathOf) => {
    if (typeof value !== 'string' || value.includes('-----BEGIN ')) return value
    if (/^(env|file):/.test(value)) return secret(value, pathOf)
    // A key whose first line is lost looks like a path.
    return readFile(value, pathOf, pathOf().at(-1) !== 'key')
  }
  const line = editing({
    apiKey: (value, pathOf) => apiKey(secret(value, pathOf), pathOf),
    headers: eachSecret,
    query: eachSecret,
    proxy: secret,
    tls: editing({ ca: pem, cert: pem, key: pem }),
  })
  const top = editing({
    urlSigningSecret: (value, pathOf) => eachItem(secret)(secret(value, pathOf), pathOf),
    keys: eachItem(editing({ secret })),
    lines: eachItem(line),
  })
  return { value: top(source, () => []), faults, files }
}

/** Returns an edit of the members of an object; all others stay as they are, and so does an object that has nothing to edit. */
function editing(edits: Readonly<Record<string, Edit>>): Edit {
  return (value, pathOf) => {
    if (!isJsonObject(value)) return value
    let edited: JsonObject = value
    for (const name in edits) {
      if (!Object.hasOwn(value, name)) continue
      const member = edits[name]?.(value[name], () => [...pathOf(), name])
      if (member !== value[name]) edited = { ...edited, [name]: member }
    }
    return edited
  }
}

function eachItem(edit: Edit): Edit {
  return (list, pathOf) =>
    Array.isArray(list) ? list.map((item, i) => edit(item, () => [...pathOf(), i])) : list
}

/**
 * Returns what the file of a secret holds, without the white space around it. Only a regular file is read: reading a pipe
 * could wait forever. A fault names the file, and never what it holds.
 */
export function readSecretFile(file: string): { readonly text: string } | { readonly fault: string } {
  try {
    const status = statSync(file)
    if (!status.isFile() || status.size > MAX_FILE_BYTES)
      return { fault: `${file} is no file of at most 1 MiB` }
    const text = readFileSync(file, 'utf8').trim()
    return text === '' ? { fault: `the file ${file} is empty` } : { text }
  } catch (error) {
    return { fault: `the file ${file} cannot be read (${(error as NodeJS.ErrnoException).code})` }
  }
}
