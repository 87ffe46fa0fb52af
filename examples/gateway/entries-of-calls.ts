import type { CallLogEntry, CallLogWriter } from 'express-model-gateway/call-log'

/**
 * Looking at the log leaves no entry: who watches it live, as the console does, would else see himself looking. What was
 * refused does, so that its request id can be searched for.
 */
export function withoutLookUps(writer: CallLogWriter): Pick<CallLogWriter, 'add'> {
  return {
    add(entry: CallLogEntry): void {
      if (!isLookUp(entry)) writer.add(entry)
    },
  }
}

const LOOK_UP = /^\/v1\/calls(?:\/|$)/

function isLookUp({ method, path, status }: CallLogEntry): boolean {
  return method === 'GET' && status === 200 && LOOK_UP.test(path)
}
