import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PRELOAD = import.meta.resolve('./preload.ts')
const REPORTER = fileURLToPath(import.meta.resolve('./stop-at-failure.ts'))

/** How the tests of a file ended. */
export interface TestRun {
  readonly outcome: 'passed' | 'failed' | 'timeout'
  readonly ms: number
  /** The tests that failed; empty where the process ended otherwise. */
  readonly failed: readonly string[]
  /** How many tests passed. */
  readonly passed: number
  /** The last words of the process. */
  readonly lastWords: string
}

/** What {@link runTestFile} is told beside the file. */
export interface TestRunOptions {
  /** For `preload.ts`. */
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

/**
 * Runs one file of tests in a process of its own. What it has started ends with it, and what it
 * has left in the folder of temporary files is removed.
 */
export async function runTestFile(file: string, { env, timeoutMs }: TestRunOptions): Promise<TestRun> {
  const temporary = mkdtempSync(join(tmpdir(), 'mutants-'))
  // Postgres runs as another user.
  chmodSync(temporary, 0o755)
  const started = performance.now()
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env
  const reporter = [`--test-reporter=${REPORTER}`, '--test-reporter-destination=stdout']
  const child = spawn(process.execPath, [...process.execArgv, `--import=${PRELOAD}`, ...reporter, file], {
    detached: true,
    env: { ...inherited, ...env, TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const endAll = () => endGroup(child.pid)
  process.once('exit', endAll)
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-100_000)
    })
  }
  let outcome: TestRun['outcome'] | undefined
  const timer = setTimeout(() => {
    outcome = 'timeout'
    endAll()
  }, timeoutMs)
  const [code] = await once(child, 'exit')
  const ms = performance.now() - started
  clearTimeout(timer)
  endAll()
  process.off('exit', endAll)
  await removed(temporary)
  const failed = [...said.matchAll(/^failed: (.*)$/gm)].map(([, name]) => name as string)
  const onlyIgnored = failed.length === 0 && /^ignored: /m.test(said)
  outcome ??= code === 0 || onlyIgnored ? 'passed' : 'failed'
  const passed = Number(/^passed: (\d+)$/m.exec(said)?.[1] ?? 0)
  return { outcome, ms, failed, passed, lastWords: said.trim().split('\n').slice(-3).join(' ').slice(0, 200) }
}

/** Where the text of a mutant, and what was run, are put. */
export function scratchFolder(root: string): string {
  const folder = join(root, 'node_modules', '.cache', 'mutants')
  mkdirSync(folder, { recursive: true })
  return folder
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // All have ended.
  }
}

/** A process that was just killed may still write. */
async function removed(folder: string): Promise<void> {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  } catch (error) {
    console.warn(`left behind: ${folder}: ${error}`)
  }
}
