import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Ask, Probe } from './probe.ts'

/** What a process prints when it listens: a target of the bench its port, the gateway its origin. */
const LISTENS = /^(?:listening |express-model-gateway is ready at http:\/\/.*:)(\d+)$/

/** A process that serves one port of this machine and has the probe in it. */
export interface ProbedProcess extends AsyncDisposable {
  readonly port: number
  /** What the {@link Probe} in it answers. */
  ask<Name extends keyof Probe>(name: Name, argument?: number): Promise<Awaited<ReturnType<Probe[Name]>>>
}

/** Runs a script that listens on the port in `PORT`, on this process's conditions and the given flags of Node. */
export async function startProbed(
  script: string,
  env: Record<string, string>,
  nodeFlags: readonly string[] = [],
): Promise<ProbedProcess> {
  const probe = join(import.meta.dirname, 'probe.ts')
  const child = spawn(process.execPath, [...process.execArgv, ...nodeFlags, '--import', probe, script], {
    env: { ...process.env, NODE_ENV: 'production', ...env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    serialization: 'advanced',
  })
  const killed = (): void => void child.kill('SIGKILL')
  process.once('exit', killed)
  const answers = new Answers(child)
  return {
    port: await portOf(child, script),
    ask: (name, argument) => answers.to(name, argument) as never,
    async [Symbol.asyncDispose]() {
      process.off('exit', killed)
      if (child.exitCode !== null) return
      const ended = once(child, 'exit')
      killed()
      await ended
    },
  }
}

/** All that the process prints is read, so that it never waits for a reader. */
function portOf(child: ChildProcess, script: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`${script} ended with code ${code} before it listened`)))
    createInterface(child.stdout as NonNullable<ChildProcess['stdout']>).on('line', (line) => {
      const port = LISTENS.exec(line)?.[1]
      if (port !== undefined) resolve(Number(port))
    })
  })
}

class Answers {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>()
  #asked = 0

  constructor(child: ChildProcess) {
    this.#child = child
    child.on('message', ({ id, answer }: { id: number; answer: unknown }) => {
      this.#waiting.get(id)?.resolve(answer)
      this.#waiting.delete(id)
    })
    child.on('exit', (code, signal) => {
      for (const { reject } of this.#waiting.values())
        reject(new Error(`the measured process ended with ${code ?? signal}`))
    })
  }

  to(name: keyof Probe, argument = 0): Promise<unknown> {
    const ask: Ask = { id: this.#asked++, name, argument }
    return new Promise((resolve, reject) => {
      this.#waiting.set(ask.id, { resolve, reject })
      this.#child.send(ask)
    })
  }
}
