import type { Logger } from 'express-model-gateway'
import type { LineFigures } from 'express-model-gateway/route'
import { WebhookSender, WebhookWatch } from 'express-model-gateway/webhooks'
import type { DurableStores } from './durable-stores.ts'

/** What webhooks are run with. */
export interface WebhookParts extends Pick<DurableStores, 'outbox' | 'watchSource'> {
  /** How the lines do in this process. */
  readonly lineFigures: () => readonly LineFigures[]
  readonly allowPrivate: boolean
  readonly logger: Logger
}

/** Watches what webhooks are told of, and delivers it. */
export function runWebhooks({ outbox, watchSource, lineFigures, allowPrivate, logger }: WebhookParts) {
  const lines = () =>
    lineFigures().map(({ id, circuits }) => ({
      id,
      down: circuits.some(({ scope, account }) => scope === 'line' && account === null),
    }))
  const watch = new WebhookWatch({ outbox, lines, logger, ...(watchSource && { source: watchSource }) })
  const sender = new WebhookSender({ outbox, allowPrivate, logger })
  return {
    get stats() {
      return sender.stats
    },
    noteLedger: (away: boolean): void => watch.noteLedger(away),
    async close(): Promise<void> {
      await watch.close()
      await sender.close()
    },
  }
}
