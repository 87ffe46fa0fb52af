import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const modules = fileURLToPath(new URL('../../node_modules', import.meta.url))

/** The bodies that the providers publish a type of, in their own packages. */
const TYPES = {
  chat: 'OpenAI.Chat.ChatCompletionCreateParams',
  response: 'OpenAI.Responses.ResponseCreateParams',
  message: 'Anthropic.MessageCreateParams',
} as const

export type PublishedType = keyof typeof TYPES

/** A generic parameter accepts members that are not in the type: hosts of open models have more. */
const HEAD = `import type OpenAI from '${modules}/openai/index.js'
import type Anthropic from '${modules}/@anthropic-ai/sdk/index.js'
${Object.entries(TYPES)
  .map(([name, type]) => `declare function ${name}<T extends ${type}>(body: T): void`)
  .join('\n')}
`

/**
 * Checks bodies by the types of the providers' packages.
 *
 * @returns what is wrong with each body that does not fit, by its position.
 */
export function misfits(
  bodies: readonly { type: PublishedType; body: unknown }[],
): ReadonlyMap<number, string> {
  const folder = mkdtempSync(join(tmpdir(), 'published-types-'))
  try {
    const file = join(folder, 'bodies.ts')
    const lines = bodies.map(({ type, body }) => `${type}(${JSON.stringify(body)})`)
    writeFileSync(file, HEAD + lines.join('\n'))
    const options =
      '--ignoreConfig --noEmit --strict --skipLibCheck --pretty false --target es2022 --module nodenext'
    const tsc = join(modules, 'typescript/lib/tsc.js')
    const { stdout, status } = spawnSync(process.execPath, [tsc, ...options.split(' '), file], {
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    })
    const first = HEAD.split('\n').length
    const found = new Map<number, string>()
    for (const [, line, message] of stdout.matchAll(/^\S*bodies\.ts\((\d+),\d+\): (.*(?:\n +.*)*)/gm))
      found.set(Number(line) - first, message as string)
    if (status !== 0 && found.size === 0) throw new Error(stdout)
    return found
  } finally {
    rmSync(folder, { recursive: true })
  }
}
