// Search parameters of the usage page.
import { one, searchOf } from '../../app/search'

export const usageSearch = searchOf({
  measure: one('COST', 'TOKENS', 'TURNS'),
  by: one('AGENT', 'MODEL', 'CHANNEL', 'CAUSE'),
  period: one('DAYS_30', 'DAYS_90', 'MONTH', 'LAST_MONTH'),
})
