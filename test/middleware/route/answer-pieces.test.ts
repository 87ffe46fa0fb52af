import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { it } from 'node:test'
import { writePieces } from '../../../lib/middleware/route/relay/answer-pieces.ts'

for (const pieces of [[], ['one'], ['one', 'three'], ['one', 'three', 'five']])
  it(`an answer in ${pieces.length} pieces is sent whole, in their order, with its length`, () => {
    const log: string[] = []
    const res = {
      setHeader: (name: string, value: number) => void log.push(`${name}: ${value}`),
      write: (bytes: Buffer) => void log.push(`write ${bytes}`),
      end: (bytes?: Buffer) => void log.push(`end ${bytes ?? ''}`),
    }
    writePieces(
      res as unknown as ServerResponse,
      pieces.map((text) => Buffer.from(text)),
    )
    assert.deepEqual(log, [
      `content-length: ${pieces.join('').length}`,
      ...pieces.slice(0, -1).map((text) => `write ${text}`),
      `end ${pieces.at(-1) ?? ''}`,
    ])
  })
