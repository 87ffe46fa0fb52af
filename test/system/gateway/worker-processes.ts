import { until } from '../../support/until.ts'
import type { FileGateway } from './file-gateway.ts'
import { askedChat } from './keep-alive-load.ts'

export const ASKED = [askedChat(), askedChat('chat-small', true)]
export const CALLERS = 8

/** The processes that have answered calls, since it had said so much. */
export function answering({ gateway }: FileGateway, since = 0): Set<number> {
  const calls = gateway.stdout.slice(since).matchAll(/"pid":(\d+),[^\n]*"msg":"call"/g)
  return new Set([...calls].map(([, pid]) => Number(pid)))
}

export function says({ gateway }: FileGateway, message: string, since = 0): Promise<void> {
  return until(() => gateway.stdout.includes(`"msg":"${message}"`, since), message, 100_000)
}
